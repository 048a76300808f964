#include "record_values.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#include "words.hpp"

namespace qualify::traces {

namespace ondemand = simdjson::ondemand;

namespace {

/// The high bit of each byte that is `least` or more; no byte is above 0x7F.
std::uint64_t from(std::uint64_t word, unsigned char least) {
  return word + kOnes * (0x80U - least);
}

/// Four bytes from eight hex digits, of which the first is in the lowest byte. False: no digits.
bool unhex8(std::uint64_t word, std::uint32_t& to) {
  if ((word & kHighs) != 0) return false;
  const std::uint64_t lower = word | (kOnes * 0x20U);
  const std::uint64_t digit = from(word, '0') & ~from(word, '9' + 1);
  const std::uint64_t letter = from(lower, 'a') & ~from(lower, 'f' + 1) & from(word, 'A');
  if (((digit | letter) & kHighs) != kHighs) return false;
  // '0' to '9' end in their value, 'a' to 'f' in theirs less 9.
  std::uint64_t value = (word & (kOnes * 0x0FU)) + ((letter & kHighs) >> 7U) * 9;
  value = ((value << 4U) | (value >> 8U)) & 0x00FF00FF00FF00FFU;
  value = (value | (value >> 8U)) & 0x0000FFFF0000FFFFU;
  to = static_cast<std::uint32_t>(value | (value >> 16U));
  return true;
}

}  // namespace

bool unhex(std::string_view text, unsigned char* to, std::size_t size) {
  if (text.size() != 2 * size || size % 4 != 0) return false;
  for (std::size_t i = 0; i < size; i += 4) {
    std::uint64_t word = 0;
    std::uint32_t four = 0;
    std::memcpy(&word, text.data() + 2 * i, sizeof word);
    if (!unhex8(word, four)) return false;
    std::memcpy(to + i, &four, sizeof four);
  }
  return true;
}

bool set_digest(std::string_view hex, Event& event) {
  std::array<unsigned char, 32> raw{};
  if (!unhex(hex, raw.data(), 32) && !unhex(hex, raw.data(), 16) && !unhex(hex, raw.data(), 8)) {
    return false;
  }
  std::memcpy(&event.digest_lo, raw.data(), 8);
  std::memcpy(&event.digest_hi, raw.data() + 8, 8);
  std::memcpy(event.tail.data(), raw.data() + 16, 16);
  return true;
}

void as_sample(Event& event) {
  event.algorithm = Algorithm::sample;
  event.coverage = Coverage::sampled;
  // What is left of a SHA-256 over a sample goes into 16 bytes.
  event.tail = {};
}

bool set_bits(std::string_view text, Event& event) {
  if (!text.starts_with("0x") || (text.size() != 10 && text.size() != 18)) return false;
  std::uint64_t bits = 0;
  const auto [stop, error] = std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
  if (error != std::errc{} || stop != text.data() + text.size()) return false;
  event.value_bits = bits;
  event.value_type = text.size() == 10 ? ValueType::float32 : ValueType::float64;
  event.coverage = Coverage::scalar;
  return true;
}

bool set_value(ondemand::value& value, Event& event, bool& set) {
  ondemand::json_type type{};
  if (value.type().get(type)) return false;
  switch (type) {
    case ondemand::json_type::number: {
      ondemand::number number;
      if (value.get_number().get(number)) return false;
      if (number.is_double()) {
        event.value_bits = std::bit_cast<std::uint64_t>(number.get_double());
        event.value_type = ValueType::float64;
      } else {
        event.value_bits = number.is_int64() ? static_cast<std::uint64_t>(number.get_int64())
                                             : number.get_uint64();
        event.value_type = ValueType::int64;
      }
      break;
    }
    case ondemand::json_type::boolean: {
      bool truth = false;
      if (value.get_bool().get(truth)) return false;
      event.value_bits = truth ? 1 : 0;
      event.value_type = ValueType::boolean;
      break;
    }
    case ondemand::json_type::string: {
      std::string_view text;
      if (value.get_string().get(text)) return false;
      if (set_bits(text, event)) break;
      const Hash hash = hash128(text);
      std::memcpy(&event.value_bits, hash.data(), sizeof event.value_bits);
      event.value_type = ValueType::text;
      break;
    }
    case ondemand::json_type::null:
    case ondemand::json_type::array:
    case ondemand::json_type::object:
      set = false;
      return true;
  }
  set = true;
  event.coverage = Coverage::scalar;
  return true;
}

}  // namespace qualify::traces
