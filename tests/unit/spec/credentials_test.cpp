#include "qualify/spec/credentials.hpp"

#include <gtest/gtest.h>

namespace qualify::spec {
namespace {

TEST(Credentials, KnownFormsAreFoundWhateverTheName) {
  EXPECT_TRUE(credential_in("AKIA" + std::string(16, 'Q')));
  EXPECT_TRUE(credential_in("x=hf_" + std::string(34, 'a')));
  EXPECT_TRUE(credential_in("ghp_" + std::string(36, 'a')));
  EXPECT_TRUE(credential_in("-----BEGIN RSA PRIVATE KEY-----"));
  EXPECT_TRUE(credential_in("https://me:pass1@example.com/x"));
  EXPECT_TRUE(credential_in("eyJ" + std::string(20, 'a') + "." + std::string(20, 'b') + ".ccc"));
}

TEST(Credentials, NamesTell) {
  EXPECT_TRUE(credential_in("WANDB_API_KEY", "abc"));
  EXPECT_TRUE(credential_in("dbPassword", "x"));
  EXPECT_TRUE(credential_in("HF_TOKEN", "abcdefgh12345678"));
}

TEST(Credentials, OrdinaryTrainingSettingsAreLeftAlone) {
  EXPECT_FALSE(credential_in("TOKENIZERS_PARALLELISM", "false"));
  EXPECT_FALSE(credential_in("pad_token", "0"));
  EXPECT_FALSE(credential_in("eos_token", "<|endoftext|>"));
  EXPECT_FALSE(credential_in("CUBLAS_WORKSPACE_CONFIG", ":4096:8"));
  EXPECT_FALSE(credential_in("API_KEY", "${API_KEY}"));
  EXPECT_FALSE(credential_in("tokenizer-model", "/models/tokenizer.model"));
  EXPECT_FALSE(credential_in("https://example.com:8080/a@b"));
}

TEST(Credentials, TextFilesNameTheLine) {
  const auto found = credential_in_text("a: 1\nwandb:\n  api_key: 0123456789abcdef\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->line, 3);
  EXPECT_EQ(found->why.find("0123"), std::string::npos);
  EXPECT_FALSE(credential_in_text("a: 1\n# password: x\nmax_tokens: 4096\n"));
}

}  // namespace
}  // namespace qualify::spec
