#pragma once

#include <optional>
#include <string>
#include <vector>

#include "align.hpp"
#include "frontier.hpp"
#include "qualify/traces/localize.hpp"

/// What one rank's iteration tells, small enough to keep for thousands of ranks. Internal.
namespace qualify::traces {

/// The first different event, as far as its meaning depends on it.
struct FirstDifference {
  Divergence divergence;
  Event event;  ///< A's, or B's where A has none
  Place place;
  std::string group_text;           ///< with its ranks, if known
  std::optional<Place> last_equal;  ///< the nearest boundary before it that has a value
  bool own_input_equal = false;     ///< that boundary is the input of this very operation
  std::string a;
  std::string b;
};

struct RankReport {
  std::size_t rank_index = 0;
  std::optional<FirstDifference> first;  ///< null: this iteration is equal after all
  std::vector<Crossing> crossings;       ///< `rank` not set yet
  std::vector<std::string> chains;       ///< nodes that differ
  std::uint64_t events = 0;              ///< in both runs
  std::uint64_t own_events = 0;          ///< in A
  std::optional<Error> error;
};

/// Reads one iteration of one rank of both runs. Errors are in the report.
[[nodiscard]] RankReport report_rank(const TraceSet& a, std::size_t a_index, const TraceSet& b,
                                     std::size_t b_index, std::int64_t iteration, Strings& strings);

}  // namespace qualify::traces
