#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
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

}  // namespace

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
  if (!text.empty()) return text;
  switch (precision) {
    case Precision::float32_bits:
      return shortest(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case Precision::integer:
      return std::to_string(static_cast<std::int64_t>(bits));
    default:
      return shortest(value());
  }
}

Scalar of_float32(float value) {
  return {std::bit_cast<std::uint32_t>(value), Precision::float32_bits, 0, {}};
}

Scalar of_float64(double value) {
  return {std::bit_cast<std::uint64_t>(value), Precision::float64_bits, 0, {}};
}

Scalar of_integer(std::int64_t value) {
  return {static_cast<std::uint64_t>(value), Precision::integer, 0, {}};
}

std::optional<Scalar> parse_number(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  std::string_view unsigned_text = text;
  const bool negative = unsigned_text.front() == '-';
  if (negative || unsigned_text.front() == '+') unsigned_text.remove_prefix(1);
  if (equal_ignoring_case(unsigned_text, "nan") || equal_ignoring_case(unsigned_text, "inf") ||
      equal_ignoring_case(unsigned_text, "infinity")) {
    double value = unsigned_text.front() == 'n' || unsigned_text.front() == 'N'
                       ? std::numeric_limits<double>::quiet_NaN()
                       : std::numeric_limits<double>::infinity();
    if (negative) value = -value;
    return Scalar{std::bit_cast<std::uint64_t>(value), Precision::printed, 1, std::string(text)};
  }
  int digits = 0;
  bool leading = true;
  bool whole = true;
  for (const char c : unsigned_text) {
    if (c >= '0' && c <= '9') {
      if (c != '0') leading = false;
      if (!leading) ++digits;
    } else if (c == '.') {
      whole = false;
    } else if (c == 'e' || c == 'E') {
      whole = false;
      break;
    } else {
      return std::nullopt;
    }
  }
  const char* number = *begin == '+' ? begin + 1 : begin;
  if (whole) {
    std::int64_t integer = 0;
    const auto [stop, error] = std::from_chars(number, end, integer);
    // "-0" has a sign that an integer loses.
    if (error == std::errc{} && stop == end && !(negative && integer == 0)) {
      return of_integer(integer);
    }
  }
  double value = 0;
  const auto [stop, error] = std::from_chars(number, end, value);
  if (stop != end || (error != std::errc{} && error != std::errc::result_out_of_range)) {
    return std::nullopt;
  }
  if (error == std::errc::result_out_of_range) return std::nullopt;
  return Scalar{std::bit_cast<std::uint64_t>(value), Precision::printed, digits > 0 ? digits : 1,
                std::string(text)};
}

namespace {

/// Digits after the point of a number without exponent; null for others.
std::optional<std::size_t> decimals_of(const Scalar& scalar) {
  if (scalar.precision != Precision::printed || !std::isfinite(scalar.value())) return std::nullopt;
  if (scalar.text.find_first_of("eE") != std::string::npos) return std::nullopt;
  const auto point = scalar.text.find('.');
  return point == std::string::npos ? 0 : scalar.text.size() - point - 1;
}

}  // namespace

void settle_precision(Source& source) {
  for (auto& [name, series] : source.series) {
    int most_digits = 0;
    std::size_t most_decimals = 0;
    for (const auto& [iteration, scalar] : series.values) {
      if (scalar.precision == Precision::printed)
        most_digits = std::max(most_digits, scalar.digits);
      if (const auto decimals = decimals_of(scalar))
        most_decimals = std::max(most_decimals, *decimals);
    }
    for (auto& [iteration, scalar] : series.values) {
      if (scalar.precision != Precision::printed || !std::isfinite(scalar.value())) continue;
      if (most_digits >= 16) {
        scalar = {scalar.bits, Precision::float64_bits, 0, {}};
        continue;
      }
      const auto decimals = decimals_of(scalar);
      if (!decimals || *decimals == most_decimals) continue;
      if (*decimals == 0 && scalar.text.find('.') == std::string::npos) scalar.text += '.';
      scalar.text.append(most_decimals - *decimals, '0');
      scalar.digits += static_cast<int>(most_decimals - *decimals);
    }
  }
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
  }
  return found;
}

void Source::mark(std::string_view text) {
  marks.update(text);
  marks.update(std::string_view("\n"));
  ++mark_count;
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

void Source::add(Series& to, std::int64_t iteration, Scalar value, const std::string& place,
                 bool restarted) {
  if (iteration < 0 || iteration > kMaxIteration) {
    fault("bad-step", "\"" + to.name + "\" at a step that is none: " + std::to_string(iteration),
          place, to.name);
    return;
  }
  if (to.values.empty() || to.values.rbegin()->first < iteration) {
    to.values.emplace_hint(to.values.end(), iteration, std::move(value));
    return;
  }
  const auto [found, fresh] = to.values.try_emplace(iteration, value);
  if (fresh || (restarted && found->second == value)) return;
  if (to.kind != MetricKind::numeric && restarted) return;
  fault("duplicate-step",
        "\"" + to.name + "\" twice at iteration " + std::to_string(iteration) + ": " +
            found->second.str() + " and " + value.str(),
        place, to.name, iteration);
}

}  // namespace qualify::evidence
