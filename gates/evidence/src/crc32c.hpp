#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace qualify::evidence {

/// CRC-32C (Castagnoli, RFC 3720 appendix B.4). Uses the CPU's instruction where there is one.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> data);

/// As TFRecord stores it: rotated right by 15 bits, plus a constant
/// (tensorflow/core/lib/hash/crc32c.h).
[[nodiscard]] constexpr std::uint32_t mask_crc(std::uint32_t crc) {
  return ((crc >> 15U) | (crc << 17U)) + 0xA282EAD8U;
}

}  // namespace qualify::evidence
