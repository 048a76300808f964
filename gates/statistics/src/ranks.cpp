#include "qualify/statistics/ranks.hpp"

#include <cmath>

#include "qualify/statistics/location.hpp"
#include "qualify/statistics/steps.hpp"

namespace qualify::statistics {

std::optional<SlowestRank> slowest_rank(const RankTimes& times,
                                        const std::vector<std::int64_t>& steady) {
  std::vector<double> medians;
  std::optional<SlowestRank> slowest;
  for (const auto& [rank, seconds] : times) {
    std::vector<double> usable;
    for (const std::int64_t step : steady) {
      const auto found = seconds.find(step);
      if (found != seconds.end() && std::isfinite(found->second) && found->second > 0) {
        usable.push_back(found->second);
      }
    }
    if (usable.size() < kLeastSteadySteps) continue;
    medians.push_back(median(usable).value());
    if (!slowest || medians.back() > slowest->typical) {
      slowest = SlowestRank{rank, 0, medians.back(), 0};
    }
  }
  if (medians.size() < 2) return std::nullopt;
  slowest->ranks = medians.size();
  slowest->above = std::log(slowest->typical / median(medians).value());
  return slowest;
}

std::optional<Straggler> straggler(const std::vector<SlowestRank>& launches) {
  std::map<std::uint32_t, Straggler> by_rank;
  std::optional<Straggler> most;
  for (const SlowestRank& launch : launches) {
    Straggler& own = by_rank[launch.rank];
    own.rank = launch.rank;
    ++own.slowest_in;
    own.above += launch.above;
  }
  for (const auto& [rank, own] : by_rank) {
    if (!most || own.slowest_in > most->slowest_in) most = own;
  }
  if (most) {
    most->launches = launches.size();
    most->above /= static_cast<double>(most->slowest_in);
  }
  return most;
}

}  // namespace qualify::statistics
