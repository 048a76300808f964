#include <gtest/gtest.h>
#include <sys/stat.h>

#include "qualify/base/files.hpp"
#include "qualify/ledger/signer.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"

namespace qualify::ledger {
namespace {

using test::TempFolder;

unsigned mode_of(const fs::path& file) {
  struct stat status {};
  ::stat(file.c_str(), &status);
  return status.st_mode & 07777U;
}

std::string openssl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), OPENSSL_PROGRAM);
  return test::run_program(arguments).output;
}

TEST(KeyFiles, AFreshKeyIsOursAloneAndOpensslReadsIt) {
  const TempFolder folder;
  const auto signer = create_key(folder / "key.pem").value();
  EXPECT_EQ(mode_of(folder / "key.pem"), 0600U);
  EXPECT_EQ(mode_of(folder / "key.pem.pub"), 0644U);
  EXPECT_TRUE(read_file(folder / "key.pem")->starts_with("-----BEGIN PRIVATE KEY-----"));
  EXPECT_EQ(openssl({"pkey", "-in", (folder / "key.pem").string(), "-pubout"}),
            signer->public_key().pem());
  EXPECT_EQ(read_file(folder / "key.pem.pub").value(), signer->public_key().pem());
  EXPECT_EQ(load_key(folder / "key.pem").value()->public_key().key_id(),
            signer->public_key().key_id());
  EXPECT_EQ(load_public_key(folder / "key.pem.pub")->key_id(), signer->public_key().key_id());
  EXPECT_EQ(sha256(signer->public_key().spki_der()).hex(), signer->public_key().key_id());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 2);
}

TEST(KeyFiles, AKeyIsNeverReplaced) {
  const TempFolder folder;
  ASSERT_TRUE(create_key(folder / "key.pem"));
  const std::string before = read_file(folder / "key.pem").value();
  EXPECT_EQ(create_key(folder / "key.pem").error().code, Errc::already_exists);
  EXPECT_EQ(read_file(folder / "key.pem").value(), before);
}

TEST(KeyFiles, AKeyThatOthersCanReadIsRefused) {
  const TempFolder folder;
  ASSERT_TRUE(create_key(folder / "key.pem"));
  for (const mode_t mode : {0640U, 0604U, 0620U, 0601U}) {
    ASSERT_EQ(::chmod((folder / "key.pem").c_str(), mode), 0);
    const auto loaded = load_key(folder / "key.pem");
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, Errc::refused);
    EXPECT_NE(loaded.error().hint.find("chmod 600"), std::string::npos);
  }
  ASSERT_EQ(::chmod((folder / "key.pem").c_str(), 0400), 0);
  EXPECT_TRUE(load_key(folder / "key.pem"));
}

TEST(KeyFiles, WhatIsNoP256KeyIsNamed) {
  const TempFolder folder;
  const auto code_of = [&](const std::string& name) {
    EXPECT_EQ(::chmod((folder / name).c_str(), 0600), 0);
    const auto loaded = load_key(folder / name);
    return loaded ? "taken" : name_of(loaded.error().code);
  };
  openssl({"genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384", "-out",
           (folder / "p384").string()});
  openssl({"genpkey", "-algorithm", "ED25519", "-out", (folder / "ed").string()});
  ASSERT_TRUE(write_file_atomic(folder / "text", "hello\n", 0600));
  ASSERT_TRUE(create_key(folder / "key.pem"));
  EXPECT_STREQ(code_of("p384"), "invalid-input");
  EXPECT_STREQ(code_of("ed"), "invalid-input");
  EXPECT_STREQ(code_of("text"), "invalid-input");
  EXPECT_STREQ(code_of("key.pem.pub"), "invalid-input");
  EXPECT_EQ(load_key(folder / "none").error().code, Errc::not_found);
  // A private key where a public one is wanted.
  EXPECT_EQ(load_public_key(folder / "key.pem").error().code, Errc::invalid_input);
}

TEST(KeyFiles, OtherSpellingsOfOneKeyHaveOneId) {
  const TempFolder folder;
  const auto signer = create_key(folder / "key.pem").value();
  // SEC 1 form and a compressed point inside are the same private key.
  openssl({"ec", "-in", (folder / "key.pem").string(), "-conv_form", "compressed", "-out",
           (folder / "sec1").string()});
  ASSERT_EQ(::chmod((folder / "sec1").c_str(), 0600), 0);
  EXPECT_EQ(load_key(folder / "sec1").value()->public_key().key_id(),
            signer->public_key().key_id());
  // A compressed public key would have another id: it is refused instead.
  openssl({"ec", "-in", (folder / "key.pem").string(), "-pubout", "-conv_form", "compressed",
           "-out", (folder / "compressed.pub").string()});
  EXPECT_EQ(load_public_key(folder / "compressed.pub").error().code, Errc::invalid_input);
}

TEST(KeyFiles, AnEncryptedKeyNeedsItsPassphrase) {
  const TempFolder folder;
  const fs::path file = folder / "key.pem";
  const auto made = create_key(file, "correct horse").value();
  EXPECT_TRUE(read_file(file)->starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----"));
  int asked = 0;
  const auto with = [&](const char* passphrase) {
    return load_key(file, [&, passphrase](const fs::path&) -> Result<std::string> {
      ++asked;
      return std::string(passphrase);
    });
  };
  EXPECT_EQ(with("correct horse").value()->public_key().key_id(), made->public_key().key_id());
  EXPECT_EQ(with("wrong").error().code, Errc::invalid_input);
  EXPECT_EQ(asked, 2);
  const auto without = load_key(file);
  ASSERT_FALSE(without);
  EXPECT_NE(without.error().message.find("passphrase"), std::string::npos);
  const auto refused = load_key(
      file, [](const fs::path&) -> Result<std::string> { return fail(Errc::io, "no terminal"); });
  EXPECT_NE(refused.error().message.find("no terminal"), std::string::npos);
}

// A token's key comes the same way (pkcs11:…), from another provider than OpenSSL's own for files.
TEST(KeyFiles, AKeyIsFoundByItsUri) {
  const TempFolder folder;
  const auto made = create_key(folder / "key.pem", "correct horse").value();
  const std::string uri = "file:" + (folder / "key.pem").string();
  const auto with = [&](const char* passphrase) {
    return load_key_from_store(
        uri, [&](const fs::path&) -> Result<std::string> { return std::string(passphrase); });
  };
  const auto signer = with("correct horse");
  ASSERT_TRUE(signer) << signer.error().describe();
  EXPECT_EQ((*signer)->public_key().key_id(), made->public_key().key_id());
  EXPECT_TRUE(made->public_key().verify("text", (*signer)->sign("text").value()));
  EXPECT_EQ(with("wrong").error().code, Errc::invalid_input);
  EXPECT_NE(load_key_from_store(uri).error().message.find("no passphrase"), std::string::npos);
}

TEST(KeyFiles, AUriThatNoProviderKnowsSaysWhatIsMissing) {
  const auto signer = load_key_from_store("pkcs11:token=none;object=none");
  ASSERT_FALSE(signer);
  EXPECT_NE(signer.error().hint.find("provider"), std::string::npos);
}

TEST(KeyFiles, APlainKeyAsksNothing) {
  const TempFolder folder;
  ASSERT_TRUE(create_key(folder / "key.pem"));
  EXPECT_TRUE(load_key(folder / "key.pem", [](const fs::path&) -> Result<std::string> {
    ADD_FAILURE() << "asked";
    return std::string();
  }));
}

}  // namespace
}  // namespace qualify::ledger
