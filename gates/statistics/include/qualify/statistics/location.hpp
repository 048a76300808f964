#pragma once

#include <span>

#include "qualify/base/error.hpp"

/// Pure statistics of step times and of paired launches. No I/O, no global state; every function
/// may be called from any thread. Inputs are plain samples in one unit (which the result keeps);
/// an empty sample or a value that is not finite is an error (invalid_input), never a NaN result.
namespace qualify::statistics {

/// Refuses an empty sample, fewer than `least` values, or a NaN or infinity among them.
[[nodiscard]] Result<void> check_sample(std::span<const double> values, std::size_t least,
                                        const char* what);

[[nodiscard]] Result<double> mean(std::span<const double> values);

/// Unbiased sample standard deviation (divisor n - 1); needs 2 values.
[[nodiscard]] Result<double> standard_deviation(std::span<const double> values);

/// Middle value, or the mean of the two middle values (R: median, type 7 at 0.5).
[[nodiscard]] Result<double> median(std::span<const double> values);

/// Mean after dropping floor(fraction * n) values at each end; 0 <= fraction < 0.5
/// (R: mean(x, trim)).
[[nodiscard]] Result<double> trimmed_mean(std::span<const double> values, double fraction);

/// One-sample Hodges-Lehmann estimate: the median of the n (n + 1) / 2 Walsh averages
/// (x_i + x_j) / 2, i <= j. O(n log n) time, O(n) memory: bisection on the value with a
/// two-pointer count, exact to the last bit.
/// Source: Hodges & Lehmann 1963; counting as in Johnson & Mizoguchi 1978.
[[nodiscard]] Result<double> hodges_lehmann(std::span<const double> values);

/// Two-sample Hodges-Lehmann shift of x against y: the median of all x_i - y_j.
[[nodiscard]] Result<double> hodges_lehmann_shift(std::span<const double> x,
                                                  std::span<const double> y);

}  // namespace qualify::statistics
