#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "qualify/statistics/location.hpp"
#include "qualify/statistics/steps.hpp"

namespace qualify::statistics {

namespace {

constexpr double kStall = 1.5;        // times the typical step
constexpr double kVeryStrong = 10.0;  // BIC difference, Kass & Raftery 1995, section 3.2

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f%%", 100 * share);
  return text;
}

/// Stalls and glitches brought to the edge of the bulk, for the detectors only: one stall must
/// neither hide a shift nor be one. The edge is 3 scaled median absolute deviations away.
std::vector<double> clipped(std::span<const double> values, double centre) {
  std::vector<double> distance;
  for (const double v : values) distance.push_back(std::fabs(v - centre));
  const double edge = 3 * 1.4826 * median(distance).value();
  std::vector<double> result(values.begin(), values.end());
  if (!(edge > 0)) return result;
  for (double& v : result) v = std::clamp(v, centre - edge, centre + edge);
  return result;
}

/// BIC difference of "level plus c times this regressor" (a step, a ramp) against a level alone,
/// with n replaced by the effective sample size of the residuals.
double evidence_for(std::span<const double> values, const std::vector<double>& regressor) {
  const double centre = mean(values).value();
  const double middle = mean(regressor).value();
  double xx = 0;
  double xy = 0;
  double none = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    xx += (regressor[i] - middle) * (regressor[i] - middle);
    xy += (regressor[i] - middle) * (values[i] - centre);
    none += (values[i] - centre) * (values[i] - centre);
  }
  if (!(none > 0) || !(xx > 0)) return 0;
  std::vector<double> residuals(values.begin(), values.end());
  double one = 0;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    residuals[i] -= centre + xy / xx * (regressor[i] - middle);
    one += residuals[i] * residuals[i];
  }
  if (!(one > 0)) return std::numeric_limits<double>::infinity();
  // The residuals of a fit look less correlated than the noise is: Kendall's correction of the
  // lag-1 coefficient (Kendall 1954), once for each of the two fitted parameters.
  const double count = static_cast<double>(values.size());
  const auto lags = autocorrelation(residuals, 1);
  const double r = lags ? (*lags)[1] : 0;
  const double rho = std::clamp(r + 2 * (1 + 4 * std::max(r, 0.0)) / count, 0.0, 0.99);
  const double n = std::max(
      2.0, std::min(effective_sample_size(residuals).value(), count * (1 - rho) / (1 + rho)));
  return n * std::log(none / one) - 2 * std::log(n);
}

std::vector<double> step_after(std::size_t at, std::size_t n) {
  std::vector<double> regressor(n, 0.0);
  std::fill(regressor.begin() + static_cast<std::ptrdiff_t>(at), regressor.end(), 1.0);
  return regressor;
}

std::vector<double> ramp_until(std::size_t end, std::size_t n) {
  std::vector<double> regressor;
  for (std::size_t i = 0; i < n; ++i) regressor.push_back(static_cast<double>(std::min(i, end)));
  return regressor;
}

}  // namespace

Result<WindowSummary> summarise(const Window& window, double material) {
  const std::span<const double> seconds(window.seconds);
  if (auto ok = check_sample(seconds, kLeastSteadySteps, "a window"); !ok) {
    return tl::unexpected(ok.error());
  }
  WindowSummary summary;
  const double n = static_cast<double>(seconds.size());
  summary.steps = seconds.size();
  summary.typical = median(seconds).value();
  if (!(summary.typical > 0)) return fail(Errc::invalid_input, "step times must be positive");
  summary.hodges_lehmann = hodges_lehmann(seconds).value();
  summary.mean = mean(seconds).value();

  const double limit = kStall * summary.typical;
  double total = 0;
  double stalled = 0;
  std::size_t stalls = 0;
  for (const double s : seconds) {
    total += s;
    if (s > limit) {
      stalled += s - limit;
      ++stalls;
    }
  }
  summary.stall_burden = stalled / total;
  summary.stalls_per_1000 = 1000 * static_cast<double>(stalls) / n;

  if (const auto rho = autocorrelation(seconds, 1)) summary.lag1 = (*rho)[1];
  summary.effective_steps = effective_sample_size(seconds).value();
  const double s = standard_deviation(seconds).value();
  summary.long_run_variance = s * s * n / summary.effective_steps;

  const auto bulk = clipped(seconds, summary.typical);
  // By how much the typical step changes after `at` steps, if that is material.
  const auto material_change = [&](std::size_t at) -> std::optional<double> {
    const double change =
        (median(seconds.subspan(at)).value() - median(seconds.first(at)).value()) / summary.typical;
    if (std::fabs(change) <= material) return std::nullopt;
    return change;
  };
  const std::size_t count = seconds.size();
  summary.transient = mser5(bulk).value();
  const std::size_t settled = 5 * summary.transient.discarded;
  if (!summary.transient.steady) {
    const auto change = material_change(settled);
    if (change && (evidence_for(bulk, step_after(settled, count)) > kVeryStrong ||
                   evidence_for(bulk, ramp_until(settled, count)) > kVeryStrong)) {
      summary.faults.push_back(
          {"no-steady-state", "MSER-5 discards " + std::to_string(summary.transient.discarded) +
                                  " of " + std::to_string(summary.transient.batches) +
                                  " batches; the typical step of the rest differs by " +
                                  percent(*change)});
    }
  }
  const double ramp = evidence_for(bulk, ramp_until(count, count));
  double step = 0;
  if (const auto shift = mean_shift(bulk)) {
    step = evidence_for(bulk, step_after(shift->at, count));
    const auto change = material_change(shift->at);
    if (change && step > kVeryStrong && step >= ramp) {
      summary.shift = *shift;
      summary.faults.push_back({"shift-in-window", "the typical step changes by " +
                                                       percent(*change) + " after step " +
                                                       std::to_string(window.step[shift->at - 1])});
    }
  }
  if (const auto change = material_change(count / 2);
      change && ramp > kVeryStrong && ramp > step && summary.faults.empty()) {
    summary.faults.push_back({"no-steady-state", "the step time drifts through the window, by " +
                                                     percent(*change) +
                                                     " from its first half to its second"});
  }
  return summary;
}

}  // namespace qualify::statistics
