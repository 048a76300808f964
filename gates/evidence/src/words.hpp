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

}  // namespace qualify::evidence
