#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

/// Internal to this module.
namespace qualify::evidence {

/// Eight characters, the first in the lowest byte.
inline std::uint64_t eight_at(const char* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

/// How many of eight characters are digits, up to the first that is none: of a digit the high bit
/// stays clear when 118 is added to its value. What a later one carries over is behind the first.
inline unsigned leading_digits(std::uint64_t word) {
  const std::uint64_t values = word ^ 0x3030303030303030U;  // "00000000"
  const std::uint64_t others = ((values + 0x7676767676767676U) | values) & 0x8080808080808080U;
  return static_cast<unsigned>(std::countr_zero(others)) / 8;
}

}  // namespace qualify::evidence
