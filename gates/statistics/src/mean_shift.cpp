#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "qualify/statistics/distributions.hpp"
#include "qualify/statistics/location.hpp"
#include "qualify/statistics/series.hpp"

namespace qualify::statistics {

namespace {

/// P(argmax V <= x) for V(s) = W(-s) - |s|/2 left of zero and sqrt(phi) W(s) - |s|/2 right of it:
/// Bai 1997, appendix B, for equal regressors on both sides (xi = 1).
/// phi: variance after the break over variance before it.
double break_cdf(double x, double phi) {
  const double s = std::fabs(x);
  const double root = std::sqrt(s);
  const double gauss = std::sqrt(s / (2 * std::numbers::pi));
  // exp(a) * Phi(-b), with Phi's tail replaced by its series where exp(a) would overflow
  const auto scaled_tail = [](double a, double b) {
    if (b < 35) return std::exp(a) * normal_cdf(-b);
    return std::exp(a - b * b / 2) / (b * std::sqrt(2 * std::numbers::pi));
  };
  if (x < 0) {
    const double f = 1 / phi;
    const double weight = phi * (phi + 2) / (phi + 1);
    const double c = s / 2 - 2 + (phi + 2) * (phi + 2) / (phi + 1);
    return -gauss * std::exp(-s / 8) - weight * scaled_tail(f * (1 + f) * s / 2, (0.5 + f) * root) +
           c * normal_cdf(-root / 2);
  }
  const double f = 1 / phi;
  const double weight = (2 * phi + 1) / (phi * (phi + 1));
  const double c = (2 * phi + 1) * (2 * phi + 1) / ((phi + 1) * phi) - 2 + f * s / 2;
  return 1 + std::sqrt(f) * gauss * std::exp(-f * s / 8) +
         weight * scaled_tail((phi + 1) * s / 2, (phi + 0.5) / std::sqrt(phi) * root) -
         c * normal_cdf(-std::sqrt(f) * root / 2);
}

double break_quantile(double p, double phi) {
  double low = -1;
  double high = 1;
  while (break_cdf(low, phi) > p) low *= 2;
  while (break_cdf(high, phi) < p) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-12 * std::fmax(1.0, std::fabs(low)); ++i) {
    const double middle = low + (high - low) / 2;
    (break_cdf(middle, phi) < p ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

double bic(double rss, double n, double parameters) {
  return n * (std::log(2 * std::numbers::pi) + std::log(rss / n) + 1) + parameters * std::log(n);
}

struct Segments {
  double rss_before = 0;
  double rss_after = 0;
  double before = 0;
  double after = 0;
};

Segments split(std::span<const double> values, std::size_t at) {
  Segments s;
  s.before = mean(values.first(at)).value();
  s.after = mean(values.subspan(at)).value();
  for (const double v : values.first(at)) s.rss_before += (v - s.before) * (v - s.before);
  for (const double v : values.subspan(at)) s.rss_after += (v - s.after) * (v - s.after);
  return s;
}

}  // namespace

Result<MeanShift> mean_shift(std::span<const double> values) {
  if (auto ok = check_sample(values, 10, "a change point"); !ok) return tl::unexpected(ok.error());
  const std::size_t n = values.size();
  const double centre = mean(values).value();
  MeanShift result;
  for (const double v : values) result.rss_none += (v - centre) * (v - centre);
  if (!(result.rss_none > 0)) {
    return fail(Errc::invalid_input, "all values are equal: there is no change point");
  }
  // The best break has the largest between-segment sum of squares; running sums make it O(n).
  const auto least =
      std::max<std::size_t>(2, static_cast<std::size_t>(0.15 * static_cast<double>(n)));
  double sum = 0;
  double best = -1;
  for (std::size_t i = 1; i + least <= n; ++i) {
    sum += values[i - 1] - centre;
    if (i < least) continue;
    const double between =
        sum * sum * static_cast<double>(n) / (static_cast<double>(i) * static_cast<double>(n - i));
    if (between > best) {
      best = between;
      result.at = i;
    }
  }
  const Segments s = split(values, result.at);
  result.before = s.before;
  result.after = s.after;
  result.rss_one = s.rss_before + s.rss_after;
  const double count = static_cast<double>(n);
  result.bic_none = bic(result.rss_none, count, 2);
  result.bic_one =
      result.rss_one > 0 ? bic(result.rss_one, count, 4) : -std::numeric_limits<double>::infinity();

  const double delta2 = (s.after - s.before) * (s.after - s.before);
  const double var_before = s.rss_before / static_cast<double>(result.at);
  const double var_after = s.rss_after / static_cast<double>(n - result.at);
  result.low = result.high = result.at;
  if (!(var_before > 0 && var_after > 0 && delta2 > 0)) {
    result.interval_known = result.rss_one == 0;
    return result;
  }
  const double phi = var_after / var_before;
  const double at_zero = break_cdf(0, phi);
  if (!std::isfinite(at_zero) || at_zero <= 0.025 || at_zero >= 0.975) return result;
  const double unit = var_before / delta2;
  const double up = std::ceil(break_quantile(0.975, phi) * unit);
  const double down = -std::floor(break_quantile(0.025, phi) * unit);
  const double at = static_cast<double>(result.at);
  if (!(up < 1e9 && down < 1e9)) return result;
  result.low = static_cast<std::size_t>(std::fmax(0.0, at - up));
  result.high = static_cast<std::size_t>(at + down);
  result.interval_known = true;
  return result;
}

}  // namespace qualify::statistics
