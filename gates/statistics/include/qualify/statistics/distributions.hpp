#pragma once

/// The few distributions that the rest needs. Student's t comes from Boost.Math, whose headers
/// only distributions.cpp includes.
namespace qualify::statistics {

/// P(T <= t), Student's t with `df` > 0 degrees of freedom.
[[nodiscard]] double student_cdf(double t, double df);

/// The t with P(T <= t) = p, 0 < p < 1, df > 0.
[[nodiscard]] double student_quantile(double p, double df);

/// P(Z <= z) of the standard normal; accurate in both tails.
[[nodiscard]] double normal_cdf(double z);

}  // namespace qualify::statistics
