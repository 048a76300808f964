#include <bit>
#include <cmath>

#include "qualify/exactness/compare.hpp"

namespace qualify::exactness {

using evidence::Notation;
using evidence::Precision;
using evidence::Scalar;

namespace {

bool digest(Precision precision) {
  return precision == Precision::sha256 || precision == Precision::weak_digest;
}

/// Bits as a number line: neighbours differ by one, -0 and +0 are neighbours too.
template <class Unsigned>
std::uint64_t on_a_line(std::uint64_t bits) {
  constexpr auto sign = static_cast<Unsigned>(Unsigned{1} << (sizeof(Unsigned) * 8 - 1));
  const auto own = static_cast<Unsigned>(bits);
  // -0 lies below +0 by one, so that a changed sign of zero has a distance.
  return (own & sign) != 0 ? static_cast<Unsigned>(~own) : static_cast<Unsigned>(own | sign);
}

/// Half of the last printed digit's worth: the true value lies within that of the text's.
double half_last_digit(const Scalar& printed) {
  // A scientific zero is zero: anything else would have its own exponent.
  if (printed.notation != Notation::fixed && printed.value() == 0) return 0;
  return 0.5 * std::pow(10.0, printed.last_digit);
}

/// By one format: "%.6E" and "%.6E", "%.3f" and "%.3f".
bool printed_alike(const Scalar& a, const Scalar& b) {
  return a.notation == b.notation &&
         (a.notation == Notation::fixed ? a.last_digit == b.last_digit : a.digits == b.digits);
}

Pair printed_against(const Scalar& printed, const Scalar& other) {
  const double p = printed.value();
  const double v = other.value();
  if (std::isnan(p) || std::isnan(v)) {
    return std::isnan(p) && std::isnan(v) ? Pair::consistent : Pair::differs;
  }
  if (std::isinf(p) || std::isinf(v)) return p == v ? Pair::consistent : Pair::differs;
  double room = half_last_digit(printed);
  if (other.precision == Precision::printed) room += half_last_digit(other);
  // The bound itself is computed in float64: leave it a few ulps.
  const double slack = 4 * std::fabs(p) * 2.220446049250313e-16 + room * 1e-9;
  return std::fabs(p - v) <= room + slack ? Pair::consistent : Pair::differs;
}

/// float64 as the run had it, against the float32 that another source kept of it.
Pair narrow_against_wide(float narrow, double wide) {
  if (std::isnan(narrow) || std::isnan(wide)) {
    return std::isnan(narrow) && std::isnan(wide) ? Pair::consistent : Pair::differs;
  }
  if (std::bit_cast<std::uint64_t>(static_cast<double>(narrow)) ==
      std::bit_cast<std::uint64_t>(wide)) {
    return Pair::equal;
  }
  return std::bit_cast<std::uint32_t>(static_cast<float>(wide)) ==
                 std::bit_cast<std::uint32_t>(narrow)
             ? Pair::consistent
             : Pair::differs;
}

Pair integer_against(std::int64_t whole, const Scalar& other) {
  const double v = other.value();
  if (!std::isfinite(v)) return Pair::differs;
  const bool narrow = other.precision == Precision::float32_bits;
  const std::uint64_t limit = std::uint64_t{1} << (narrow ? 24U : 53U);
  const std::uint64_t size =
      whole < 0 ? ~static_cast<std::uint64_t>(whole) + 1 : static_cast<std::uint64_t>(whole);
  const double as_other =
      narrow ? static_cast<double>(static_cast<float>(whole)) : static_cast<double>(whole);
  if (as_other != v || (whole == 0 && std::signbit(v))) return Pair::differs;
  return size <= limit ? Pair::equal : Pair::consistent;
}

}  // namespace

std::optional<std::uint64_t> ulps_between(const Scalar& a, const Scalar& b) {
  if (a.precision != b.precision) return std::nullopt;
  std::uint64_t x = 0;
  std::uint64_t y = 0;
  switch (a.precision) {
    case Precision::float32_bits:
      x = on_a_line<std::uint32_t>(a.bits);
      y = on_a_line<std::uint32_t>(b.bits);
      break;
    case Precision::float64_bits:
      x = on_a_line<std::uint64_t>(a.bits);
      y = on_a_line<std::uint64_t>(b.bits);
      break;
    case Precision::integer:
      x = a.bits ^ (std::uint64_t{1} << 63U);
      y = b.bits ^ (std::uint64_t{1} << 63U);
      return x > y ? x - y : y - x;
    default:
      return std::nullopt;
  }
  if (std::isnan(a.value()) || std::isnan(b.value())) return std::nullopt;
  return x > y ? x - y : y - x;
}

Pair compare_scalars(const Scalar& a, const Scalar& b) {
  if (digest(a.precision) || digest(b.precision)) {
    if (a.precision != b.precision) return Pair::differs;
    return a.text == b.text ? Pair::equal : Pair::differs;
  }
  if (a.precision == Precision::printed && b.precision == Precision::printed) {
    // The same digits are as far as it goes; other digits may still be one value in two roundings.
    if (printed_alike(a, b)) {
      const bool both_nan = std::isnan(a.value()) && std::isnan(b.value());
      return a.bits == b.bits || both_nan ? Pair::consistent : Pair::differs;
    }
    return printed_against(a, b);
  }
  if (a.precision == Precision::printed) return printed_against(a, b);
  if (b.precision == Precision::printed) return printed_against(b, a);
  if (a.precision == b.precision) return a.bits == b.bits ? Pair::equal : Pair::differs;
  if (a.precision == Precision::integer)
    return integer_against(static_cast<std::int64_t>(a.bits), b);
  if (b.precision == Precision::integer)
    return integer_against(static_cast<std::int64_t>(b.bits), a);
  const Scalar& narrow = a.precision == Precision::float32_bits ? a : b;
  const Scalar& wide = a.precision == Precision::float32_bits ? b : a;
  return narrow_against_wide(std::bit_cast<float>(static_cast<std::uint32_t>(narrow.bits)),
                             wide.value());
}

}  // namespace qualify::exactness
