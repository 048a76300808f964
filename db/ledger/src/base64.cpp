#include "qualify/ledger/base64.hpp"

#include <array>
#include <cstdint>

namespace qualify::ledger {

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::int8_t, 256> make_values() {
  std::array<std::int8_t, 256> values{};
  for (auto& value : values) value = -1;
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}
constexpr auto kValues = make_values();

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = (group << 8U) | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += k <= count ? kAlphabet[(group >> (18U - 6U * k)) & 63U] : '=';
    }
  }
  return text;
}

Result<std::string> base64_decode(std::string_view text) {
  const auto bad = [](const char* why) {
    return fail(Errc::invalid_input,
                std::string("not base 64 as RFC 4648 section 4 has it: ") + why);
  };
  if (text.size() % 4 != 0) return bad("the length is no multiple of 4");
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    std::size_t digits = 4;
    if (last && text[i + 3] == '=') digits = text[i + 2] == '=' ? 2 : 3;
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const int value = k < digits ? kValues[static_cast<unsigned char>(text[i + k])] : 0;
      if (value < 0) return bad("a character outside the alphabet");
      group = (group << 6U) | static_cast<std::uint32_t>(value);
    }
    if ((digits == 2 && (group & 0xFFFFU) != 0) || (digits == 3 && (group & 0xFFU) != 0)) {
      return bad("unused bits are not zero");
    }
    for (std::size_t k = 0; k + 1 < digits; ++k) {
      bytes += static_cast<char>((group >> (16U - 8U * k)) & 0xFFU);
    }
  }
  return bytes;
}

}  // namespace qualify::ledger
