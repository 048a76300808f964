#include "crc32c.hpp"

#include <boost/crc.hpp>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace qualify::evidence {

namespace {

std::uint32_t portable(std::span<const std::byte> data) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(data.data(), data.size());
  return crc.checksum();
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::span<const std::byte> data) {
  std::uint64_t crc = 0xFFFFFFFFU;
  while (data.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data.data(), 8);
    crc = _mm_crc32_u64(crc, word);
    data = data.subspan(8);
  }
  auto narrow = static_cast<std::uint32_t>(crc);
  for (const std::byte byte : data) {
    narrow = _mm_crc32_u8(narrow, static_cast<unsigned char>(byte));
  }
  return ~narrow;
}
#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> data) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return by_instruction(data);
#endif
  return portable(data);
}

}  // namespace qualify::evidence
