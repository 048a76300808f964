#include "qualify/statistics/series.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "qualify/statistics/location.hpp"

namespace qualify::statistics {

Result<std::vector<double>> autocorrelation(std::span<const double> values, std::size_t max_lag) {
  if (auto ok = check_sample(values, std::max<std::size_t>(2, max_lag + 1), "an autocorrelation");
      !ok) {
    return tl::unexpected(ok.error());
  }
  const double centre = mean(values).value();
  std::vector<double> result(max_lag + 1, 0.0);
  for (std::size_t lag = 0; lag <= max_lag; ++lag) {
    for (std::size_t i = 0; i + lag < values.size(); ++i) {
      result[lag] += (values[i] - centre) * (values[i + lag] - centre);
    }
  }
  const double variance = result[0];
  if (!(variance > 0)) {
    return fail(Errc::invalid_input, "all values are equal: there is no autocorrelation");
  }
  for (double& r : result) r /= variance;
  return result;
}

Result<double> effective_sample_size(std::span<const double> values) {
  if (auto ok = check_sample(values, 4, "an effective sample size"); !ok) {
    return tl::unexpected(ok.error());
  }
  const double n = static_cast<double>(values.size());
  const double centre = mean(values).value();
  // Lag by lag: the sequence ends after a few of them, and all n / 2 would cost O(n^2).
  const auto covariance = [&](std::size_t lag) {
    double sum = 0;
    for (std::size_t i = 0; i + lag < values.size(); ++i) {
      sum += (values[i] - centre) * (values[i + lag] - centre);
    }
    return sum;
  };
  const double variance = covariance(0);
  if (!(variance > 0)) return n;
  double inflation = -1;
  for (std::size_t lag = 0; lag + 1 <= values.size() / 2; lag += 2) {
    const double pair = (covariance(lag) + covariance(lag + 1)) / variance;
    if (!(pair > 0)) break;
    inflation += 2 * pair;
  }
  return std::clamp(n / std::max(inflation, 1.0), 1.0, n);
}

Result<Transient> mser5(std::span<const double> values) {
  if (auto ok = check_sample(values, 20, "MSER-5"); !ok) return tl::unexpected(ok.error());
  std::vector<double> batches;
  for (std::size_t i = 0; i + 5 <= values.size(); i += 5) {
    batches.push_back(mean(values.subspan(i, 5)).value());
  }
  Transient result;
  result.batches = batches.size();
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t d = 0; d + 3 <= batches.size(); ++d) {
    const auto rest = std::span(batches).subspan(d);
    const double centre = mean(rest).value();
    double squares = 0;
    for (const double b : rest) squares += (b - centre) * (b - centre);
    const double kept = static_cast<double>(rest.size());
    const double score = squares / (kept * kept);
    if (score < best) {
      best = score;
      result.discarded = d;
      result.mean_after = centre;
    }
  }
  result.steady = 2 * result.discarded <= result.batches;
  if (result.discarded > 0) {
    result.mean_before = mean(std::span(batches).first(result.discarded)).value();
  }
  return result;
}

}  // namespace qualify::statistics
