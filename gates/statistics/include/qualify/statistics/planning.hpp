#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "qualify/base/error.hpp"

/// How many looks, pairs and steps: decided before the first run.
namespace qualify::statistics {

/// One registered look at the data: with exactly `pairs` pairs, each one-sided bound has error
/// `alpha`.
struct Look {
  std::uint32_t pairs = 0;
  double alpha = 0;
  bool operator==(const Look&) const = default;
};

/// Looks with growing numbers of pairs and alphas that add up to at most `total`: by the union
/// bound each one-sided error over all looks is at most `total`, whatever the correlation.
/// The default registration is 4 pairs at .01 and 6 at .04. Errors: invalid_input.
[[nodiscard]] Result<void> check_looks(std::span<const Look> looks, double total);

/// Variance components of a balanced experiment of launches x steps (Kalibera & Jones 2013,
/// "Rigorous benchmarking in reasonable time", equations 2-4; level 1 = steps).
/// data: outermost level first; every inner vector of equal length >= 2.
struct TwoLevels {
  double s1 = 0;  ///< S_1^2: variance of steps within a launch, averaged
  double s2 = 0;  ///< S_2^2: variance of the launch means
  double t1 = 0;  ///< T_1^2 = S_1^2
  double t2 = 0;  ///< T_2^2 = S_2^2 - S_1^2 / r_1: between launches alone; may be negative
};
[[nodiscard]] Result<TwoLevels> two_levels(std::span<const std::vector<double>> launches);

/// The same for three levels [outer][middle][inner]: S_i^2 and T_i^2, i = 1..3.
struct ThreeLevels {
  double s[3] = {};
  double t[3] = {};
};
[[nodiscard]] Result<ThreeLevels> three_levels(
    std::span<const std::vector<std::vector<double>>> data);

/// Steps a launch that buy the most precision for the time: ceil(sqrt(c_launch / c_step *
/// T_1^2 / T_2^2)), equation 5; at least 1. With autocorrelated steps give t1 as the long-run
/// variance (variance * n / effective sample size). Absent when t2 <= 0: steps are then all that
/// matters. launch_cost: what a start costs, in steps (about 100).
[[nodiscard]] std::optional<std::uint64_t> best_steps_per_launch(double t1, double t2,
                                                                 double launch_cost);

}  // namespace qualify::statistics
