#include "qualify/ledger/checkpoint.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "qualify/base/files.hpp"
#include "support/temp_folder.hpp"

namespace qualify::ledger {
namespace {

class CheckpointTest : public ::testing::Test {
 protected:
  test::TempFolder folder_;
  LogSigner signer_ = LogSigner::create(folder_ / "log.pem", "qualify.example.org").value();
  std::string note_ = signer_.sign(7, sha256("root")).value();
};

TEST_F(CheckpointTest, ComesBackAsItWasSigned) {
  const auto read = open_checkpoint(note_, signer_.verifier()).value();
  EXPECT_EQ(read, (Checkpoint{"qualify.example.org", 7, sha256("root")}));
  EXPECT_TRUE(note_.starts_with("qualify.example.org\n7\n"));
  EXPECT_NE(note_.find("\n\n\xe2\x80\x94 qualify.example.org "), std::string::npos);
}

TEST_F(CheckpointTest, AKeyWhoseNameIsNoHostNameIsRefused) {
  // golang.org/x/mod/sumdb/note, package example: a key and a note that it signed.
  const auto verifier =
      LogVerifier::parse("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW");
  // The name is no host name: notes allow it, this log does not.
  EXPECT_EQ(verifier.error().code, Errc::invalid_input);
}

TEST_F(CheckpointTest, NothingOfItCanBeChanged) {
  for (std::size_t i = 0; i < note_.size(); ++i) {
    std::string changed = note_;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(open_checkpoint(changed, signer_.verifier())) << i;
  }
  EXPECT_FALSE(open_checkpoint("", signer_.verifier()));
  EXPECT_FALSE(open_checkpoint(note_.substr(0, note_.find("\n\n") + 2), signer_.verifier()));
  EXPECT_FALSE(open_checkpoint(note_ + "\n", signer_.verifier()));
}

TEST_F(CheckpointTest, OtherSignaturesOnANoteAreLeftAlone) {
  const LogSigner witness = LogSigner::create(folder_ / "w.pem", "witness.example.org").value();
  const std::string other = witness.sign(7, sha256("root")).value();
  const std::string line = other.substr(other.find("\n\n") + 2);
  EXPECT_TRUE(open_checkpoint(note_ + line, signer_.verifier()));
  const auto alone =
      open_checkpoint(note_.substr(0, note_.find("\n\n") + 2) + line, signer_.verifier());
  EXPECT_EQ(alone.error().code, Errc::integrity);
}

TEST_F(CheckpointTest, AnotherLogsCheckpointIsRefused) {
  const LogSigner other = LogSigner::create(folder_ / "o.pem", "other.example.org").value();
  EXPECT_EQ(open_checkpoint(note_, other.verifier()).error().code, Errc::integrity);
  const LogSigner same_name = LogSigner::create(folder_ / "s.pem", "qualify.example.org").value();
  EXPECT_EQ(open_checkpoint(note_, same_name.verifier()).error().code, Errc::integrity);
}

TEST_F(CheckpointTest, KeysAreKeptAsSigningKeysAre) {
  struct stat status {};
  ASSERT_EQ(::stat((folder_ / "log.pem").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  const auto loaded = LogSigner::load(folder_ / "log.pem").value();
  EXPECT_TRUE(open_checkpoint(loaded.sign(9, sha256("x")).value(), signer_.verifier()));
  EXPECT_EQ(LogSigner::create(folder_ / "log.pem", "a.b").error().code, Errc::already_exists);
  ASSERT_EQ(::chmod((folder_ / "log.pem").c_str(), 0644), 0);
  EXPECT_EQ(LogSigner::load(folder_ / "log.pem").error().code, Errc::refused);
}

TEST_F(CheckpointTest, APublicKeyOfAnotherPrivateKeyIsNoticed) {
  const LogSigner other = LogSigner::create(folder_ / "o.pem", "qualify.example.org").value();
  ASSERT_TRUE(write_file_atomic(folder_ / "log.pem.vkey", other.verifier().text() + "\n"));
  EXPECT_EQ(LogSigner::load(folder_ / "log.pem").error().code, Errc::integrity);
}

TEST_F(CheckpointTest, NamesAreBareHostNames) {
  for (const char* name : {"", "a b", "a/b", "https://a", "A.org", "a+b", "-a", ".a", "a\n"}) {
    EXPECT_FALSE(LogSigner::create(folder_ / "n.pem", name)) << name;
  }
  EXPECT_FALSE(fs::exists(folder_ / "n.pem"));
}

}  // namespace
}  // namespace qualify::ledger
