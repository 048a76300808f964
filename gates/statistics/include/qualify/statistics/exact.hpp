#pragma once

#include <span>

#include "qualify/base/error.hpp"
#include "qualify/statistics/paired.hpp"

/// Exact, distribution-free companions of the t intervals: they state how little few pairs can say.
namespace qualify::statistics {

/// Two-sided p of "the mean is zero" over all 2^k sign flips of the differences, k in 1..20:
/// the share of flips whose |sum| is at least the observed one. Smallest value 2^(1-k).
/// Source: Fisher 1935, The Design of Experiments, section 21.
[[nodiscard]] Result<double> sign_flip_p(std::span<const double> differences);

/// Wilcoxon's signed ranks of differences without zeros or ties in |d| (those are errors), n <= 50.
struct SignedRank {
  double v = 0;              ///< sum of the ranks of positive differences
  double p = 0;              ///< exact, two-sided
  double pseudo_median = 0;  ///< one-sample Hodges-Lehmann estimate
  Interval interval;         ///< order statistics of the Walsh averages
  double achieved = 0;  ///< its exact confidence, at least what was asked unless n is too small
};
/// Source: Hollander & Wolfe 1999, 3.1-3.3; conventions as R's wilcox.test(exact, conf.int).
[[nodiscard]] Result<SignedRank> signed_rank(std::span<const double> differences,
                                             double confidence);

/// Exact two-sided p of the rank-sum (Mann-Whitney) test, samples without ties, n * m <= 2500.
/// Source: Mann & Whitney 1947.
[[nodiscard]] Result<double> rank_sum_p(std::span<const double> x, std::span<const double> y);

/// Probability that [min, max] of k independent values covers the median: 1 - 2^(1-k).
[[nodiscard]] double range_coverage_of_median(int k);

}  // namespace qualify::statistics
