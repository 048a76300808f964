#include "qualify/ledger/base64.hpp"

#include <gtest/gtest.h>

namespace qualify::ledger {
namespace {

TEST(Base64, Rfc4648Vectors) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, coded] : vectors) {
    EXPECT_EQ(base64_encode(plain), coded);
    EXPECT_EQ(base64_decode(coded).value(), plain);
  }
}

TEST(Base64, EveryByteComesBack) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  EXPECT_EQ(base64_decode(base64_encode(bytes)).value(), bytes);
}

TEST(Base64, OneSpellingOnly) {
  for (const char* text : {"Zg", "Zg=", "Zg==\n", " Zg==", "Zh==", "Zm9=", "Zg==Zg==", "Z===",
                           "====", "-_-_", "Zm9v\n", "Zm 9v", "Z=9v", "Zm9v="}) {
    EXPECT_FALSE(base64_decode(text)) << text;
  }
  EXPECT_FALSE(base64_decode(std::string("Zm9\0", 4)));
}

}  // namespace
}  // namespace qualify::ledger
