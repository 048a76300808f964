#pragma once

#include <cstdint>

/// Eight bytes at once. Internal to this module.
namespace qualify::traces {

inline constexpr std::uint64_t kOnes = 0x0101010101010101;  ///< times a byte: that byte eight times
inline constexpr std::uint64_t kHighs = 0x8080808080808080;  ///< the high bit of each

}  // namespace qualify::traces
