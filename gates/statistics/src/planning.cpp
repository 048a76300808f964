#include "qualify/statistics/planning.hpp"

#include <algorithm>
#include <cmath>

#include "qualify/statistics/location.hpp"

namespace qualify::statistics {

Result<void> check_looks(std::span<const Look> looks, double total) {
  if (looks.empty()) return fail(Errc::invalid_input, "at least one look must be registered");
  double spent = 0;
  std::uint32_t last = 0;
  for (const Look& look : looks) {
    if (look.pairs < 3 || look.pairs <= last) {
      return fail(Errc::invalid_input, "looks need growing numbers of pairs, 3 or more");
    }
    if (!(look.alpha > 0 && look.alpha < 0.5)) {
      return fail(Errc::invalid_input, "a look's alpha must be in (0, 0.5)");
    }
    last = look.pairs;
    spent += look.alpha;
  }
  if (spent > total * (1 + 1e-12)) {
    return fail(Errc::invalid_input, "the looks spend more error than the gate allows", {},
                "alphas must add up to at most the total, e.g. .01 + .04 = .05");
  }
  return {};
}

Result<TwoLevels> two_levels(std::span<const std::vector<double>> launches) {
  if (launches.size() < 2) {
    return fail(Errc::invalid_input, "variance components need at least 2 launches");
  }
  TwoLevels result;
  std::vector<double> means;
  for (const auto& launch : launches) {
    if (auto ok = check_sample(launch, 2, "a launch"); !ok) return tl::unexpected(ok.error());
    if (launch.size() != launches[0].size()) {
      return fail(Errc::invalid_input, "launches must have equal numbers of steps");
    }
    means.push_back(mean(launch).value());
    const double s = standard_deviation(launch).value();
    result.s1 += s * s;
  }
  result.s1 /= static_cast<double>(launches.size());
  const double s = standard_deviation(means).value();
  result.s2 = s * s;
  result.t1 = result.s1;
  result.t2 = result.s2 - result.s1 / static_cast<double>(launches[0].size());
  return result;
}

Result<ThreeLevels> three_levels(std::span<const std::vector<std::vector<double>>> data) {
  if (data.size() < 2) {
    return fail(Errc::invalid_input, "variance components need at least 2 of each level");
  }
  ThreeLevels result;
  std::vector<double> means;
  for (const auto& outer : data) {
    const auto inner = two_levels(outer);
    if (!inner) return tl::unexpected(inner.error());
    if (outer.size() != data[0].size() || outer[0].size() != data[0][0].size()) {
      return fail(Errc::invalid_input, "the experiment is not balanced");
    }
    result.s[0] += inner->s1;
    result.s[1] += inner->s2;
    std::vector<double> middles;
    for (const auto& middle : outer) middles.push_back(mean(middle).value());
    means.push_back(mean(middles).value());
  }
  const double count = static_cast<double>(data.size());
  result.s[0] /= count;
  result.s[1] /= count;
  const double s = standard_deviation(means).value();
  result.s[2] = s * s;
  result.t[0] = result.s[0];
  result.t[1] = result.s[1] - result.s[0] / static_cast<double>(data[0][0].size());
  result.t[2] = result.s[2] - result.s[1] / static_cast<double>(data[0].size());
  return result;
}

std::optional<std::uint64_t> best_steps_per_launch(double t1, double t2, double launch_cost) {
  if (!(t2 > 0) || !(t1 >= 0) || !(launch_cost > 0)) return std::nullopt;
  const double steps = std::ceil(std::sqrt(launch_cost * t1 / t2));
  if (!(steps < 1e15)) return std::nullopt;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(steps));
}

}  // namespace qualify::statistics
