#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "qualify/base/error.hpp"

/// Inference on paired launches. The unit of replication is the pair, never the step.
namespace qualify::statistics {

struct Interval {
  double low = 0;
  double high = 0;
  bool operator==(const Interval&) const = default;
};

/// An estimate on the scale of its input with everything that an interval needs.
struct Estimate {
  double value = 0;
  double standard_error = 0;
  double df = 0;  ///< degrees of freedom of Student's t

  /// Bound that lies below (above) the truth with probability 1 - alpha.
  [[nodiscard]] double lower_bound(double alpha) const;
  [[nodiscard]] double upper_bound(double alpha) const;
  /// Two-sided interval of the given confidence, e.g. 0.95.
  [[nodiscard]] Interval interval(double confidence) const;
  [[nodiscard]] double t() const;            ///< value / standard_error
  [[nodiscard]] double two_sided_p() const;  ///< of value = 0
};

/// Mean of paired differences: mean +- t s / sqrt(k), df k - 1; k >= 2.
/// Equal differences give standard_error 0: the interval is then the point.
/// Source: Student 1908 (the `sleep` data).
[[nodiscard]] Result<Estimate> paired_t(std::span<const double> differences);

/// Which arm of a pair ran first. AB: the deterministic arm, BA: the other one.
enum class Order { ab, ba };

/// AB/BA crossover of paired log-ratios.
struct Crossover {
  Estimate effect;  ///< (mean_AB + mean_BA) / 2: free of a common period effect
  Estimate period;  ///< (mean_AB - mean_BA) / 2: what running first or second costs
  std::size_t n_ab = 0;
  std::size_t n_ba = 0;
};

/// SE = s_p / 2 * sqrt(1/n_AB + 1/n_BA) with the pooled s_p, df n_AB + n_BA - 2. Needs both
/// samples and 3 pairs in all. Source: Senn, Cross-over Trials in Clinical Research, ch. 3.
[[nodiscard]] Result<Crossover> crossover(std::span<const double> ab, std::span<const double> ba);

/// Ratio of two paired means with its interval; the interval is absent where the denominator is
/// not away from zero (Fieller's set is then not an interval).
struct RatioOfMeans {
  double ratio = 0;
  std::optional<Interval> interval;
};

/// mean(numerator) / mean(denominator) of paired samples of equal length k >= 2, df k - 1.
/// confidence in (0, 1). Source: Fieller 1954.
[[nodiscard]] Result<RatioOfMeans> fieller(std::span<const double> numerator,
                                           std::span<const double> denominator, double confidence);

}  // namespace qualify::statistics
