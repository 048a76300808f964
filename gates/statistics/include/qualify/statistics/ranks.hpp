#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

/// Which rank the others wait for. Pure; any thread.
namespace qualify::statistics {

/// Seconds of each rank's own work in a step, before it waits for the others, by rank and step.
using RankTimes = std::map<std::uint32_t, std::map<std::int64_t, double>>;

struct SlowestRank {
  std::uint32_t rank = 0;
  std::size_t ranks = 0;  ///< that were compared
  double typical = 0;     ///< its median over the steady steps, seconds
  double above = 0;       ///< ln(its median / median of the ranks' medians), >= 0
};

/// The rank with the greatest median over `steady` steps; the lowest number of equals. Ranks with
/// fewer than kLeastSteadySteps usable values there do not take part; absent with fewer than two.
[[nodiscard]] std::optional<SlowestRank> slowest_rank(const RankTimes& times,
                                                      const std::vector<std::int64_t>& steady);

/// Over the launches of one arm: the rank that was slowest most often.
struct Straggler {
  std::uint32_t rank = 0;
  std::size_t slowest_in = 0;  ///< launches in which it was the slowest
  std::size_t launches = 0;    ///< launches that say it
  double above = 0;            ///< mean of SlowestRank::above where it was the slowest
};
[[nodiscard]] std::optional<Straggler> straggler(const std::vector<SlowestRank>& launches);

}  // namespace qualify::statistics
