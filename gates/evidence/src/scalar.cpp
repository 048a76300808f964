#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include <simdjson.h>

#include "source.hpp"

namespace qualify::evidence {

namespace {

bool equal_ignoring_case(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c =
        text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] - 'A' + 'a') : text[i];
    if (c != lower[i]) return false;
  }
  return true;
}

template <class T>
std::string shortest(T value) {
  if (std::isnan(value)) return "nan";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

std::string as_printed(const Scalar& scalar) {
  const double value = scalar.value();
  if (!std::isfinite(value)) return shortest(value);
  const int decimals = value == 0 ? std::max(-scalar.last_digit, 0) : scalar.digits - 1;
  switch (scalar.notation) {
    case Notation::fixed:
      return fmt::format("{:.{}f}", value, std::max(-scalar.last_digit, 0));
    case Notation::upper_e:
      return fmt::format("{:.{}E}", value, decimals);
    case Notation::lower_e:
      return fmt::format("{:.{}e}", value, decimals);
  }
  return shortest(value);
}

}  // namespace

bool is_exact(Precision precision) {
  return precision != Precision::printed && precision != Precision::weak_digest;
}

const char* name_of(Precision precision) {
  switch (precision) {
    case Precision::float32_bits:
      return "float32-bits";
    case Precision::float64_bits:
      return "float64-bits";
    case Precision::integer:
      return "integer";
    case Precision::printed:
      return "printed";
    case Precision::sha256:
      return "sha256";
    case Precision::weak_digest:
      return "weak-digest";
  }
  return "printed";
}

double Scalar::value() const {
  switch (precision) {
    case Precision::float32_bits:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case Precision::integer:
      return static_cast<double>(static_cast<std::int64_t>(bits));
    case Precision::float64_bits:
    case Precision::printed:
      return std::bit_cast<double>(bits);
    case Precision::sha256:
    case Precision::weak_digest:
      return std::numeric_limits<double>::quiet_NaN();
  }
  return std::numeric_limits<double>::quiet_NaN();
}

std::string Scalar::str() const {
  switch (precision) {
    case Precision::sha256:
    case Precision::weak_digest:
      return text;
    case Precision::printed:
      return as_printed(*this);
    case Precision::float32_bits:
      return shortest(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case Precision::integer:
      return std::to_string(static_cast<std::int64_t>(bits));
    default:
      return shortest(value());
  }
}

Scalar of_float32(float value) {
  Scalar scalar;
  scalar.bits = std::bit_cast<std::uint32_t>(value);
  scalar.precision = Precision::float32_bits;
  return scalar;
}

Scalar of_float64(double value) {
  Scalar scalar;
  scalar.bits = std::bit_cast<std::uint64_t>(value);
  return scalar;
}

Scalar of_digest(std::string_view hex, Precision precision) {
  Scalar scalar;
  scalar.precision = precision;
  scalar.text = hex;
  return scalar;
}

Scalar of_integer(std::int64_t value) {
  Scalar scalar;
  scalar.bits = static_cast<std::uint64_t>(value);
  scalar.precision = Precision::integer;
  return scalar;
}

namespace {

/// 10^0 … 10^22: those that a float64 holds exactly.
constexpr std::array<double, 23> kPowers = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                            1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                            1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

std::optional<Scalar> not_finite(std::string_view text) {
  const bool negative = text.front() == '-';
  if (negative || text.front() == '+') text.remove_prefix(1);
  double value = std::numeric_limits<double>::infinity();
  if (equal_ignoring_case(text, "nan"))
    value = std::numeric_limits<double>::quiet_NaN();
  else if (!equal_ignoring_case(text, "inf") && !equal_ignoring_case(text, "infinity"))
    return std::nullopt;
  Scalar scalar = of_float64(negative ? -value : value);
  scalar.precision = Precision::printed;
  scalar.digits = 1;
  return scalar;
}

/// "E+05" past its letter; clamped far outside of what has a value. `at` moves past it. False when
/// no digit follows.
bool take_exponent(const char*& at, const char* end, int& exponent) {
  const bool negative = at != end && *at == '-';
  if (negative || (at != end && *at == '+')) ++at;
  const char* const first = at;
  int value = 0;
  for (; at != end && *at >= '0' && *at <= '9'; ++at) {
    value = std::min(value * 10 + (*at - '0'), 20000);
  }
  exponent = negative ? -value : value;
  return at != first;
}

/// Eight characters, the first in the lowest byte.
std::uint64_t eight_at(const char* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

/// Each byte is '0' … '9': its high half is 3, also when 6 is added.
bool all_digits(std::uint64_t word) {
  return ((word & (word + 0x0606060606060606U)) & 0xF0F0F0F0F0F0F0F0U) == 0x3030303030303030U;
}

/// The number that eight digits are: neighbours are put together, then pairs, then halves.
std::uint64_t number_of(std::uint64_t word) {
  word = (word & 0x0F0F0F0F0F0F0F0FU) * 2561 >> 8U;
  word = (word & 0x00FF00FF00FF00FFU) * 6553601 >> 16U;
  return (word & 0x0000FFFF0000FFFFU) * 42949672960001U >> 32U;
}

/// Digits of a number as they are read.
struct Digits {
  std::uint64_t mantissa = 0;  ///< exact up to 19 digits
  int count = 0;               ///< significant ones
  int seen = 0;                ///< all, leading zeros too

  const char* take(const char* at, const char* end) {
    while (at != end) {
      if (count > 0 && count <= 11 && end - at >= 8) {
        const std::uint64_t word = eight_at(at);
        if (all_digits(word)) {
          mantissa = mantissa * 100'000'000 + number_of(word);
          count += 8;
          seen += 8;
          at += 8;
          continue;
        }
      }
      const auto digit = static_cast<unsigned>(*at) - '0';
      if (digit > 9) break;
      ++at;
      ++seen;
      if (digit == 0 && count == 0) continue;
      if (++count <= 19) mantissa = mantissa * 10 + digit;
    }
    return at;
  }
};

}  // namespace

const char* take_number(const char* const text, const char* const end, Scalar& scalar) {
  const char* at = text;
  if (at == end) return nullptr;
  const bool negative = *at == '-';
  if (negative || *at == '+') ++at;
  const char* const number = negative ? text : at;
  Digits digits;
  at = digits.take(at, end);
  int decimals = 0;
  const bool point = at != end && *at == '.';
  if (point) {
    const int before = digits.seen;
    at = digits.take(at + 1, end);
    decimals = digits.seen - before;
  }
  if (digits.seen == 0) return nullptr;
  scalar.notation = Notation::fixed;
  int exponent = 0;
  if (at != end && (*at == 'e' || *at == 'E')) {
    scalar.notation = *at == 'e' ? Notation::lower_e : Notation::upper_e;
    if (!take_exponent(++at, end, exponent)) return nullptr;
  } else if (!point && digits.count <= 19 && !(negative && digits.mantissa == 0)) {
    // "-0" has a sign that an integer loses.
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (digits.mantissa <= most + static_cast<std::uint64_t>(negative)) {
      scalar.bits = negative ? ~digits.mantissa + 1 : digits.mantissa;
      scalar.precision = Precision::integer;
      scalar.digits = scalar.last_digit = 0;
      return at;
    }
  }
  const int shift = exponent - decimals;
  double value = 0;
  if (digits.count <= 15 && shift >= -22 && shift <= 22) {
    // Both are exact in float64, so that one operation rounds as it must.
    const auto whole = static_cast<double>(digits.mantissa);
    value = shift < 0 ? whole / kPowers[static_cast<std::size_t>(-shift)]
                      : whole * kPowers[static_cast<std::size_t>(shift)];
    if (negative) value = -value;
  } else {
    const auto [stop, error] = std::from_chars(number, at, value);
    if (stop != at || error != std::errc{}) return nullptr;
  }
  scalar.bits = std::bit_cast<std::uint64_t>(value);
  scalar.precision = Precision::printed;
  scalar.digits = std::max(digits.count, 1);
  scalar.last_digit = shift;
  return at;
}

std::optional<Scalar> parse_number(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const char* const end = text.data() + text.size();
  Scalar scalar;
  return take_number(text.data(), end, scalar) == end ? scalar : not_finite(text);
}

std::string readable(std::string_view text) {
  if (simdjson::validate_utf8(text.data(), text.size()) &&
      text.find('\0') == std::string_view::npos) {
    return std::string(text);
  }
  constexpr std::string_view hex = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0 && byte < 0x80) {
      out += c;
    } else {
      out += "\\x";
      out += hex[byte >> 4U];
      out += hex[byte & 15U];
    }
  }
  return out;
}

Series& Source::series_named(const std::string& raw_name) {
  const std::string name = readable(raw_name);
  Series& found = series[name];
  if (found.name.empty()) {
    found.name = name;
    found.kind = kind_of(name);
    found.values = Values(spool);
  }
  return found;
}

void Source::mark(std::string_view text) {
  mark_bytes(text);
  mark_buffer += '\n';
}

void Source::mark_bytes(std::string_view bytes) {
  constexpr std::size_t kPiece = 4096;
  if (mark_buffer.size() + bytes.size() > kPiece) {
    marks.update(mark_buffer);
    mark_buffer.clear();
  }
  mark_buffer += bytes;
  ++mark_count;
}

std::string Source::finish_marks() {
  marks.update(mark_buffer);
  return marks.finish().hex();
}

void Source::fault(std::string code, std::string message, const std::string& place,
                   std::string metric, std::optional<std::int64_t> iteration) {
  // A file of noise must not fill the memory with its faults.
  constexpr std::size_t kMost = 1000;
  if (faults.size() > kMost) return;
  if (faults.size() == kMost) {
    faults.push_back({"more-faults", "further faults are not listed", file, {}, {}});
    return;
  }
  faults.push_back(
      {std::move(code), readable(message), readable(file + place), readable(metric), iteration});
}

void Source::add(Series& to, std::int64_t iteration, const Scalar& value, const std::string& place,
                 bool restarted) {
  if (iteration < 0 || iteration > kMaxIteration) {
    fault("bad-step", "\"" + to.name + "\" at a step that is none: " + std::to_string(iteration),
          place, to.name);
    return;
  }
  if (to.values.append_later(iteration, value)) return;
  Scalar earlier;
  if (to.values.insert(iteration, value, &earlier) || (restarted && earlier == value)) return;
  if (to.kind != MetricKind::numeric && restarted) return;
  fault("duplicate-step",
        "\"" + to.name + "\" twice at iteration " + std::to_string(iteration) + ": " +
            earlier.str() + " and " + value.str(),
        place, to.name, iteration);
}

}  // namespace qualify::evidence
