#include "qualify/base/digest.hpp"

#include <gtest/gtest.h>

namespace qualify {
namespace {

// FIPS 180-4, example "abc".
constexpr auto kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Digest, KnownAnswer) {
  EXPECT_EQ(sha256("abc").hex(), kAbc);
}

TEST(Digest, PiecesMakeTheSameDigestAsTheWhole) {
  Sha256 hash;
  hash.update("a");
  hash.update("");
  hash.update("bc");
  EXPECT_EQ(hash.finish(), sha256("abc"));
}

TEST(Digest, TextFormRoundTrips) {
  const Digest digest = sha256("abc");
  EXPECT_EQ(digest.str(), std::string("sha256:") + kAbc);
  EXPECT_EQ(Digest::parse(digest.str()).value(), digest);
  EXPECT_EQ(Digest::parse(digest.hex()).value(), digest);
}

TEST(Digest, RefusesWhatIsNotOne) {
  for (const std::string& text :
       {std::string(), std::string("sha256:"), std::string(64, 'g'), std::string(63, 'a'),
        std::string(64, 'A'), "sha512:" + std::string(64, 'a')}) {
    const auto parsed = Digest::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Errc::invalid_input);
  }
}

}  // namespace
}  // namespace qualify
