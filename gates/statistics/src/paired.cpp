#include "qualify/statistics/paired.hpp"

#include <cmath>
#include <limits>

#include "qualify/statistics/distributions.hpp"
#include "qualify/statistics/location.hpp"

namespace qualify::statistics {

double Estimate::lower_bound(double alpha) const {
  return value - student_quantile(1 - alpha, df) * standard_error;
}

double Estimate::upper_bound(double alpha) const {
  return value + student_quantile(1 - alpha, df) * standard_error;
}

Interval Estimate::interval(double confidence) const {
  const double alpha = (1 - confidence) / 2;
  return {lower_bound(alpha), upper_bound(alpha)};
}

double Estimate::t() const {
  if (standard_error > 0) return value / standard_error;
  if (value == 0) return 0;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

double Estimate::two_sided_p() const {
  const double statistic = std::fabs(t());
  if (std::isinf(statistic)) return 0;
  return 2 * student_cdf(-statistic, df);
}

Result<Estimate> paired_t(std::span<const double> differences) {
  if (auto ok = check_sample(differences, 2, "a paired t interval"); !ok) {
    return tl::unexpected(ok.error());
  }
  const double k = static_cast<double>(differences.size());
  return Estimate{mean(differences).value(), standard_deviation(differences).value() / std::sqrt(k),
                  k - 1};
}

Result<Crossover> crossover(std::span<const double> ab, std::span<const double> ba) {
  for (const auto sample : {ab, ba}) {
    if (auto ok = check_sample(sample, 1, "each order of an AB/BA estimate"); !ok) {
      return tl::unexpected(ok.error());
    }
  }
  if (ab.size() + ba.size() < 3) {
    return fail(Errc::invalid_input, "an AB/BA estimate needs at least 3 pairs, got 2");
  }
  const double mean_ab = mean(ab).value();
  const double mean_ba = mean(ba).value();
  double squares = 0;
  for (const double v : ab) squares += (v - mean_ab) * (v - mean_ab);
  for (const double v : ba) squares += (v - mean_ba) * (v - mean_ba);
  const double n1 = static_cast<double>(ab.size());
  const double n2 = static_cast<double>(ba.size());
  const double df = n1 + n2 - 2;
  const double error = std::sqrt(squares / df) / 2 * std::sqrt(1 / n1 + 1 / n2);
  Crossover result;
  result.effect = {(mean_ab + mean_ba) / 2, error, df};
  result.period = {(mean_ab - mean_ba) / 2, error, df};
  result.n_ab = ab.size();
  result.n_ba = ba.size();
  return result;
}

Result<RatioOfMeans> fieller(std::span<const double> numerator, std::span<const double> denominator,
                             double confidence) {
  for (const auto sample : {numerator, denominator}) {
    if (auto ok = check_sample(sample, 2, "Fieller's interval"); !ok) {
      return tl::unexpected(ok.error());
    }
  }
  if (numerator.size() != denominator.size()) {
    return fail(Errc::invalid_input, "Fieller's interval of pairs needs samples of equal length");
  }
  const double k = static_cast<double>(numerator.size());
  const double a = mean(numerator).value();
  const double b = mean(denominator).value();
  if (b == 0) return fail(Errc::invalid_input, "the mean of the denominator is zero");
  double aa = 0;
  double ab = 0;
  double bb = 0;
  for (std::size_t i = 0; i < numerator.size(); ++i) {
    aa += (numerator[i] - a) * (numerator[i] - a);
    ab += (numerator[i] - a) * (denominator[i] - b);
    bb += (denominator[i] - b) * (denominator[i] - b);
  }
  const double scale = 1 / (k * (k - 1));  // variances of the means
  const double t = student_quantile(1 - (1 - confidence) / 2, k - 1);
  // The rho with (a - rho b)^2 <= t^2 Var(a - rho b): qa rho^2 - 2 qb rho + qc <= 0.
  const double qa = b * b - t * t * bb * scale;
  const double qb = a * b - t * t * ab * scale;
  const double qc = a * a - t * t * aa * scale;
  RatioOfMeans result{a / b, std::nullopt};
  if (qa > 0) {
    const double root = std::sqrt(std::fmax(0.0, qb * qb - qa * qc));
    result.interval = Interval{(qb - root) / qa, (qb + root) / qa};
  }
  return result;
}

}  // namespace qualify::statistics
