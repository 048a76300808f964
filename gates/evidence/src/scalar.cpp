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
#include "words.hpp"

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

__extension__ using Wide = unsigned __int128;

/// Those that 64 bits hold.
constexpr auto kTens = [] {
  std::array<std::uint64_t, 20> tens{};
  std::uint64_t ten = 1;
  for (std::uint64_t& power : tens) {
    power = ten;
    ten *= 10;
  }
  return tens;
}();

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

/// The number that eight digits are: neighbours are put together, then pairs, then halves.
std::uint64_t number_of(std::uint64_t word) {
  word = (word & 0x0F0F0F0F0F0F0F0FU) * 2561 >> 8U;
  word = (word & 0x00FF00FF00FF00FFU) * 6553601 >> 16U;
  return (word & 0x0000FFFF0000FFFFU) * 42949672960001U >> 32U;
}

/// Digits onto a mantissa, which wraps around beyond 19 of them: where a number has only a few.
const char* take_few(const char* at, const char* end, std::uint64_t& mantissa) {
  for (; at != end; ++at) {
    const auto digit = static_cast<unsigned>(*at) - '0';
    if (digit > 9) break;
    mantissa = mantissa * 10 + digit;
  }
  return at;
}

/// The same, where it mostly has many.
const char* take_many(const char* at, const char* end, std::uint64_t& mantissa) {
  while (end - at >= 8) {
    const std::uint64_t word = eight_at(at);
    const unsigned digits = leading_digits(word);
    if (digits == 8) {
      mantissa = mantissa * 100'000'000 + number_of(word);
      at += 8;
      continue;
    }
    // What follows the digits is shifted out, zeros come in before them.
    mantissa = mantissa * kTens[digits] + number_of(word << (56 - 8 * digits) << 8U);
    return at + digits;
  }
  return take_few(at, end, mantissa);
}

/// Zeros at the front of a number's text, on either side of its point.
int leading_zeros(const char* at, const char* end) {
  int zeros = 0;
  for (; at != end && (*at == '0' || *at == '.'); ++at) zeros += static_cast<int>(*at == '0');
  return zeros;
}

/// For the division by 10^n, n > 0.
struct Divisor {
  std::uint64_t five = 0;        ///< 5^n, shifted to its full 64 bits
  std::uint64_t reciprocal = 0;  ///< 2^127 / five, rounded down
  int shift = 0;                 ///< by how much, less n
};
constexpr auto kDivisors = [] {
  std::array<Divisor, 28> divisors{};  // 5^27 fits in 64 bits
  std::uint64_t five = 1;
  for (std::size_t n = 1; n < divisors.size(); ++n) {
    five *= 5;
    const int zeros = std::countl_zero(five);
    const std::uint64_t full = five << static_cast<unsigned>(zeros);
    divisors[n] = {full, static_cast<std::uint64_t>((Wide{1} << 127U) / full),
                   zeros - static_cast<int>(n)};
  }
  return divisors;
}();

/// 2^(top + 10 - 63 + shift - up) x rounded. The highest bit of `rounded` is the one that a float64
/// implies, or, rounded up to 2^53, raises the exponent by one.
double scaled(std::uint64_t rounded, int top, const Divisor& divisor, int up) {
  constexpr int kBits = std::numeric_limits<double>::digits;
  constexpr int kBias = std::numeric_limits<double>::max_exponent - 1;
  const int power = top + 10 - 63 + divisor.shift - up;
  const auto exponent = static_cast<std::uint64_t>(power + kBits - 1 + kBias - 1);
  return std::bit_cast<double>((exponent << static_cast<unsigned>(kBits - 1)) + rounded);
}

/// mantissa / 10^decimals, rounded to the nearest float64, ties to even, as IEEE 754 asks: from the
/// quotient in integers to 63 or 64 bits. mantissa > 0, 0 < decimals < 28. False, once in some
/// hundred: it is a tie, or on either side of one.
inline bool near_quotient(std::uint64_t mantissa, std::size_t decimals, double& value) {
  const Divisor& divisor = kDivisors[decimals];
  const int up = __builtin_clzll(mantissa);
  mantissa <<= static_cast<unsigned>(up);
  // Too small by less than two: the reciprocal's rest and the product's are each below one.
  const auto whole =
      static_cast<std::uint64_t>((static_cast<Wide>(mantissa) * divisor.reciprocal) >> 64U);
  // Of 64 bits 11 are rounded away, of 63 10.
  const auto top = static_cast<unsigned>(whole >> 63U);
  const std::uint64_t half = std::uint64_t{512} << top;
  const std::uint64_t tail = whole & (2 * half - 1);
  if (half - tail <= 2) return false;
  // Up or down is as good as random: no branch.
  value = scaled(((whole >> 9U >> top) + 1) >> 1U, static_cast<int>(top), divisor, up);
  return true;
}

double quotient(std::uint64_t mantissa, std::size_t decimals) {
  double value = 0;
  if (near_quotient(mantissa, decimals, value)) return value;
  const Divisor& divisor = kDivisors[decimals];
  const int up = __builtin_clzll(mantissa);
  const Wide dividend = static_cast<Wide>(mantissa << static_cast<unsigned>(up)) << 63U;
  const auto whole = static_cast<std::uint64_t>(dividend / divisor.five);
  const bool exact = static_cast<Wide>(whole) * divisor.five == dividend;
  const auto top = static_cast<unsigned>(whole >> 63U);
  const std::uint64_t half = std::uint64_t{512} << top;
  const std::uint64_t tail = whole & (2 * half - 1);
  std::uint64_t rounded = whole >> 10U >> top;
  if (tail > half || (tail == half && (!exact || (rounded & 1U) != 0))) ++rounded;
  return scaled(rounded, static_cast<int>(top), divisor, up);
}

/// take_number() for every form.
[[gnu::noinline]] const char* take_any(const char* const text, const char* const end,
                                       Scalar& scalar) {
  const char* at = text;
  if (at == end) return nullptr;
  const bool negative = *at == '-';
  if (negative || *at == '+') ++at;
  const char* const number = at;
  std::uint64_t mantissa = 0;
  at = take_few(at, end, mantissa);
  int decimals = 0;
  const bool point = at != end && *at == '.';
  if (point) {
    const char* const first = at + 1;
    at = take_many(first, end, mantissa);
    decimals = static_cast<int>(at - first);
  }
  auto digits = static_cast<int>(at - number) - static_cast<int>(point);  // significant ones
  if (digits == 0) return nullptr;
  if (*number == '0' || *number == '.') digits -= leading_zeros(number, at);
  scalar.notation = Notation::fixed;
  int exponent = 0;
  if (at != end && (*at == 'e' || *at == 'E')) {
    scalar.notation = *at == 'e' ? Notation::lower_e : Notation::upper_e;
    if (!take_exponent(++at, end, exponent)) return nullptr;
  } else if (!point && digits <= 19 && !(negative && mantissa == 0)) {
    // "-0" has a sign that an integer loses.
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (mantissa <= most + static_cast<std::uint64_t>(negative)) {
      scalar.bits = negative ? ~mantissa + 1 : mantissa;
      scalar.precision = Precision::integer;
      scalar.digits = scalar.last_digit = 0;
      return at;
    }
  }
  const int shift = exponent - decimals;
  double value = 0;
  if (digits <= 15 && shift >= -22 && shift <= 22) {
    // Both are exact in float64, so that one operation rounds as it must.
    const auto whole = static_cast<double>(mantissa);
    value = shift < 0 ? whole / kPowers[static_cast<std::size_t>(-shift)]
                      : whole * kPowers[static_cast<std::size_t>(shift)];
  } else if (digits <= 19 && mantissa != 0 && shift < 0 && shift >= -27) {
    value = quotient(mantissa, static_cast<std::size_t>(-shift));
  } else {
    const auto [stop, error] = std::from_chars(number, at, value);
    if (stop != at || error != std::errc{}) return nullptr;
  }
  scalar.bits = std::bit_cast<std::uint64_t>(negative ? -value : value);
  scalar.precision = Precision::printed;
  scalar.digits = std::max(digits, 1);
  scalar.last_digit = shift;
  return at;
}

}  // namespace

/// Most numbers of a log or record are one to seven digits, or one to four, a point, up to 16 more,
/// and perhaps an exponent of two digits: read here without a branch on how many decimals there
/// are, which changes from line to line where the shortest form is printed. What they lack to 16
/// are zeros of the mantissa. Any other number is left to take_any(), as are those near a tie.
const char* take_number(const char* const text, const char* const end, Scalar& scalar) {
  constexpr std::ptrdiff_t kRoom = 32;  // what is read, at most
  if (end - text < kRoom) return take_any(text, end, scalar);
  const bool negative = *text == '-';
  const char* const number = text + static_cast<int>(negative);
  const char* at = number;
  std::uint64_t before = static_cast<unsigned>(*at) - '0';
  if (before <= 9 && at[1] == '.') {
    ++at;
  } else {
    const std::uint64_t front = eight_at(at);
    const unsigned whole = leading_digits(front);
    if (whole == 0 || whole == 8) return take_any(text, end, scalar);
    before = number_of(front << (56 - 8 * whole) << 8U);
    at += whole;
    if (*at != '.') {
      if ((*at | 0x20) == 'e' || (negative && before == 0)) return take_any(text, end, scalar);
      scalar.bits = negative ? ~before + 1 : before;
      scalar.precision = Precision::integer;
      scalar.notation = Notation::fixed;
      scalar.digits = scalar.last_digit = 0;
      return at;
    }
  }
  // What 64 bits hold of it, and 16 digits.
  constexpr std::uint64_t kScale = 10'000'000'000'000'000U;
  constexpr std::uint64_t kMostBefore = std::numeric_limits<std::uint64_t>::max() / kScale - 1;
  const char* const after = ++at;
  const std::uint64_t first = eight_at(after);
  const std::uint64_t second = eight_at(after + 8);
  const unsigned in_first = leading_digits(first);
  const unsigned count = in_first + (leading_digits(second) & (0U - (in_first >> 3U)));
  at += count;
  static constexpr auto kKeep = [] {
    std::array<char, 32> keep{};
    std::fill_n(keep.begin(), 16, '\xFF');
    return keep;
  }();
  const char* const keep = kKeep.data() + (16 - count);
  const std::uint64_t mantissa = before * kScale + number_of(first & eight_at(keep)) * 100'000'000 +
                                 number_of(second & eight_at(keep + 8));
  const auto is_digit = [](char c) { return static_cast<unsigned>(c) - '0' <= 9; };
  if (before > kMostBefore || mantissa == 0 || is_digit(*at)) return take_any(text, end, scalar);
  int digits = static_cast<int>(at - number) - 1;
  if (*number == '0') digits -= leading_zeros(number, at);
  Notation notation = Notation::fixed;
  int exponent = 0;
  if ((*at | 0x20) == 'e') {
    if ((at[1] != '-' && at[1] != '+') || !is_digit(at[2]) || !is_digit(at[3]) || is_digit(at[4]))
      return take_any(text, end, scalar);
    exponent = (at[2] - '0') * 10 + (at[3] - '0');
    if (at[1] == '-') exponent = -exponent;
    notation = *at == 'e' ? Notation::lower_e : Notation::upper_e;
    at += 4;
  }
  const int divided = 16 - exponent;
  double value = 0;
  if (divided <= 0 || divided >= static_cast<int>(kDivisors.size()) ||
      !near_quotient(mantissa, static_cast<std::size_t>(divided), value)) {
    return take_any(text, end, scalar);
  }
  scalar.bits = std::bit_cast<std::uint64_t>(negative ? -value : value);
  scalar.precision = Precision::printed;
  scalar.notation = notation;
  scalar.digits = digits;
  scalar.last_digit = exponent - static_cast<int>(count);
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

void Source::fault(std::string code, const std::string& message, const std::string& place,
                   const std::string& metric, std::optional<std::int64_t> iteration) {
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
