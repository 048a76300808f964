#include "qualify/statistics/location.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace qualify::statistics {

namespace {

std::vector<double> sorted(std::span<const double> values) {
  std::vector<double> copy(values.begin(), values.end());
  std::sort(copy.begin(), copy.end());
  return copy;
}

/// Doubles as integers in the same order, so that a bisection over all of them takes 64 steps.
std::int64_t ordered(double value) {
  const auto bits = std::bit_cast<std::int64_t>(value);
  return bits >= 0 ? bits : std::numeric_limits<std::int64_t>::min() - bits;
}
double from_ordered(std::int64_t key) {
  return std::bit_cast<double>(key >= 0 ? key : std::numeric_limits<std::int64_t>::min() - key);
}

/// The k-th smallest (1-based) of a multiset in [lo, hi] that is known by its counting function.
template <class CountNotAbove>
double kth(std::uint64_t k, double lo, double hi, const CountNotAbove& count) {
  std::int64_t low = ordered(lo);
  std::int64_t high = ordered(hi);
  while (low < high) {
    const auto distance = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    const auto middle = static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + distance / 2);
    if (count(from_ordered(middle)) >= k) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return from_ordered(low);
}

template <class CountNotAbove>
double middle_of(std::uint64_t total, double lo, double hi, const CountNotAbove& count) {
  const double lower = kth((total + 1) / 2, lo, hi, count);
  if (total % 2 == 1) return lower;
  return (lower + kth(total / 2 + 1, lower, hi, count)) / 2;
}

}  // namespace

Result<void> check_sample(std::span<const double> values, std::size_t least, const char* what) {
  if (values.size() < least) {
    return fail(Errc::invalid_input, std::string(what) + " needs at least " +
                                         std::to_string(least) + " values, got " +
                                         std::to_string(values.size()));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      return fail(Errc::invalid_input,
                  std::string(what) + ": value " + std::to_string(i + 1) + " is not finite");
    }
  }
  return {};
}

Result<double> mean(std::span<const double> values) {
  if (auto ok = check_sample(values, 1, "a mean"); !ok) return tl::unexpected(ok.error());
  const double n = static_cast<double>(values.size());
  const double first = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double residual = 0;  // second pass, as R does: takes the rounding of the first sum out
  for (const double v : values) residual += v - first;
  return first + residual / n;
}

Result<double> standard_deviation(std::span<const double> values) {
  if (auto ok = check_sample(values, 2, "a standard deviation"); !ok) {
    return tl::unexpected(ok.error());
  }
  const double centre = mean(values).value();
  double squares = 0;
  for (const double v : values) squares += (v - centre) * (v - centre);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

Result<double> median(std::span<const double> values) {
  if (auto ok = check_sample(values, 1, "a median"); !ok) return tl::unexpected(ok.error());
  std::vector<double> copy(values.begin(), values.end());
  const auto middle = copy.begin() + static_cast<std::ptrdiff_t>(copy.size() / 2);
  std::nth_element(copy.begin(), middle, copy.end());
  if (copy.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(copy.begin(), middle)) / 2;
}

Result<double> trimmed_mean(std::span<const double> values, double fraction) {
  if (auto ok = check_sample(values, 1, "a trimmed mean"); !ok) return tl::unexpected(ok.error());
  if (!(fraction >= 0 && fraction < 0.5)) {
    return fail(Errc::invalid_input, "the trimmed fraction must be in [0, 0.5)");
  }
  const auto all = sorted(values);
  const auto drop =
      static_cast<std::size_t>(std::floor(fraction * static_cast<double>(all.size())));
  return mean(std::span(all).subspan(drop, all.size() - 2 * drop));
}

Result<double> hodges_lehmann(std::span<const double> values) {
  if (auto ok = check_sample(values, 1, "a Hodges-Lehmann estimate"); !ok) {
    return tl::unexpected(ok.error());
  }
  const auto x = sorted(values);
  const std::uint64_t n = x.size();
  // Pairs i <= j with (x_i + x_j) / 2 <= v. The average is monotone in both, rounding included.
  const auto count = [&x, n](double v) {
    std::uint64_t pairs = 0;
    std::uint64_t j = n;
    for (std::uint64_t i = 0; i < n; ++i) {
      while (j > 0 && (x[i] + x[j - 1]) / 2 > v) --j;
      if (j <= i) break;
      pairs += j - i;
    }
    return pairs;
  };
  return middle_of(n * (n + 1) / 2, x.front(), x.back(), count);
}

Result<double> hodges_lehmann_shift(std::span<const double> x, std::span<const double> y) {
  for (const auto sample : {x, y}) {
    if (auto ok = check_sample(sample, 1, "a Hodges-Lehmann shift"); !ok) {
      return tl::unexpected(ok.error());
    }
  }
  const auto a = sorted(x);
  const auto b = sorted(y);
  const auto count = [&a, &b](double v) {
    std::uint64_t pairs = 0;
    std::size_t first = 0;  // smallest j with a_i - b_j <= v; grows with a_i
    for (const double value : a) {
      while (first < b.size() && value - b[first] > v) ++first;
      pairs += b.size() - first;
    }
    return pairs;
  };
  return middle_of(static_cast<std::uint64_t>(a.size()) * b.size(), a.front() - b.back(),
                   a.back() - b.front(), count);
}

}  // namespace qualify::statistics
