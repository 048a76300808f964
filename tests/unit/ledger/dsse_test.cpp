#include "qualify/ledger/dsse.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "qualify/ledger/base64.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"

namespace qualify::ledger {
namespace {

class Dsse : public ::testing::Test {
 protected:
  test::TempFolder folder_;
  std::unique_ptr<Signer> signer_ = create_key(folder_ / "key.pem").value();
  Envelope envelope_ = sign_envelope(*signer_, kInTotoPayloadType, R"({"a":1})").value();
  Json bundle_ = sigstore_bundle(envelope_, nullptr);
};

TEST_F(Dsse, EncodingIsTheSpecificationsExample) {
  // secure-systems-lab/dsse, protocol.md, test vectors.
  EXPECT_EQ(pre_authentication_encoding("http://example.com/HelloWorld", "hello world"),
            "DSSEv1 29 http://example.com/HelloWorld 11 hello world");
  EXPECT_EQ(pre_authentication_encoding("", ""), "DSSEv1 0  0 ");
}

TEST_F(Dsse, OpensslAgreesWithTheSignature) {
  ASSERT_TRUE(write_file_atomic(
      folder_ / "bytes", pre_authentication_encoding(envelope_.payload_type, envelope_.payload)));
  ASSERT_TRUE(write_file_atomic(folder_ / "signature", envelope_.signature));
  const auto judge = [&] {
    return test::run_program({OPENSSL_PROGRAM, "dgst", "-sha256", "-verify",
                              (folder_ / "key.pem.pub").string(), "-signature",
                              (folder_ / "signature").string(), (folder_ / "bytes").string()});
  };
  EXPECT_EQ(judge().output, "Verified OK\n");
  ASSERT_TRUE(write_file_atomic(folder_ / "bytes", "other"));
  EXPECT_NE(judge().exit_code, 0);
}

TEST_F(Dsse, ASignatureOfOpensslIsAccepted) {
  ASSERT_TRUE(
      write_file_atomic(folder_ / "bytes", pre_authentication_encoding(kInTotoPayloadType, "{}")));
  const auto ran = test::run_program(
      {OPENSSL_PROGRAM, "dgst", "-sha256", "-sign", (folder_ / "key.pem").string(), "-out",
       (folder_ / "signature").string(), (folder_ / "bytes").string()});
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const Envelope theirs{kInTotoPayloadType, "{}", read_file(folder_ / "signature").value(),
                        signer_->public_key().key_id()};
  EXPECT_TRUE(verify_envelope(theirs, signer_->public_key()));
}

TEST_F(Dsse, TypeContentKeyAndSignatureAreAllBound) {
  const PublicKey& key = signer_->public_key();
  EXPECT_TRUE(verify_envelope(envelope_, key));
  const auto broken = [&](auto&& change) {
    Envelope other = envelope_;
    change(other);
    const auto verified = verify_envelope(other, key);
    return !verified && verified.error().code == Errc::integrity;
  };
  EXPECT_TRUE(broken([](Envelope& e) { e.payload_type = "application/vnd.other+json"; }));
  EXPECT_TRUE(broken([](Envelope& e) { e.payload += ' '; }));
  EXPECT_TRUE(broken([](Envelope& e) { e.key_id[0] = e.key_id[0] == '0' ? '1' : '0'; }));
  EXPECT_TRUE(broken([](Envelope& e) { e.signature.back() ^= 1; }));
  EXPECT_TRUE(broken([](Envelope& e) { e.signature += '\0'; }));
  EXPECT_TRUE(broken([](Envelope& e) { e.signature.clear(); }));
  const auto other = create_key(folder_ / "other.pem").value();
  EXPECT_FALSE(verify_envelope(envelope_, other->public_key()));
}

TEST_F(Dsse, OnlyStrictDerIsASignature) {
  const std::string& der = envelope_.signature;  // 30 len 02 len r 02 len s
  const std::string body = der.substr(2);
  const auto length = static_cast<char>(body.size());
  const std::string long_form = std::string("\x30\x81") + length + body;  // BER
  const auto r_size = static_cast<std::size_t>(der[3]);
  const auto s_size = static_cast<std::size_t>(der[5 + r_size]);
  const auto fixed = [](std::string integer) {
    if (integer.size() > 32) integer.erase(0, integer.size() - 32);
    return std::string(32 - integer.size(), '\0') + integer;
  };
  const std::string raw = fixed(der.substr(4, r_size)) + fixed(der.substr(6 + r_size, s_size));
  for (const std::string& other : {long_form, raw}) {
    Envelope changed = envelope_;
    changed.signature = other;
    EXPECT_FALSE(verify_envelope(changed, signer_->public_key()));
  }
}

TEST_F(Dsse, BundleComesBackAsTheEnvelope) {
  const Envelope read = envelope_from_sigstore_bundle(bundle_).value();
  EXPECT_EQ(read.payload, envelope_.payload);
  EXPECT_EQ(read.payload_type, envelope_.payload_type);
  EXPECT_EQ(read.signature, envelope_.signature);
  EXPECT_EQ(read.key_id, envelope_.key_id);
  EXPECT_EQ(bundle_.at("mediaType"), "application/vnd.dev.sigstore.bundle.v0.3+json");
  EXPECT_EQ(sigstore_bundle(envelope_, {{"logIndex", "1"}})
                .at("verificationMaterial")
                .at("tlogEntries")
                .size(),
            1U);
}

TEST_F(Dsse, WhatABundleMustNotBe) {
  const auto code = [&](const char* pointer, Json value) {
    Json changed = bundle_;
    changed[Json::json_pointer(pointer)] = std::move(value);
    const auto read = envelope_from_sigstore_bundle(changed);
    return read ? std::string("taken") : std::string(name_of(read.error().code));
  };
  const Json signature = bundle_.at("dsseEnvelope").at("signatures").front();
  const std::string sig = signature.at("sig");
  EXPECT_EQ(code("/dsseEnvelope/signatures/1", signature), "invalid-input");
  EXPECT_EQ(code("/dsseEnvelope/signatures", Json::array()), "invalid-input");
  EXPECT_EQ(code("/dsseEnvelope/payloadType", "application/json"), "unsupported");
  EXPECT_EQ(code("/mediaType", "application/vnd.dev.sigstore.bundle+json;version=0.2"),
            "unsupported");
  EXPECT_EQ(code("/dsseEnvelope/payload", "eyJhIjoxfQ"), "invalid-input");    // no padding
  EXPECT_EQ(code("/dsseEnvelope/payload", "eyJhIjoxfR=="), "invalid-input");  // unused bits
  EXPECT_EQ(code("/dsseEnvelope/payload", "eyJhIjox\nfQ=="), "invalid-input");
  EXPECT_EQ(code("/dsseEnvelope/signatures/0/sig", sig + "\n"), "invalid-input");
  EXPECT_EQ(code("/dsseEnvelope/signatures/0/keyid", std::string(64, '0')), "invalid-input");
  EXPECT_EQ(code("/dsseEnvelope/extra", 1), "invalid-input");
  EXPECT_EQ(code("/dsseEnvelope/payload", 1), "invalid-input");
  EXPECT_EQ(code("/verificationMaterial/tlogEntries", Json::array({1, 2})), "invalid-input");
  EXPECT_EQ(code("/verificationMaterial/certificate", Json::object()), "invalid-input");
  EXPECT_FALSE(envelope_from_sigstore_bundle(Json::array()));
}

}  // namespace
}  // namespace qualify::ledger
