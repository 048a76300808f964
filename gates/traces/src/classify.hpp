#pragma once

#include <functional>
#include <vector>

#include "qualify/traces/manifest.hpp"
#include "rank_report.hpp"

/// From first differences to causes. Internal.
namespace qualify::traces {

/// What classification may ask about other ranks.
struct Neighbours {
  /// The rank's traces are in both runs.
  std::function<bool(std::int64_t rank)> recorded;
  const Manifest& manifest;
};

/// Events of one frontier, those that are one and the same on several ranks together. `reports` are
/// those of the ranks on which nothing different arrived before.
[[nodiscard]] std::vector<FrontierEvent> frontier_events(
    const std::vector<const RankReport*>& reports, const Neighbours& neighbours);

/// What to record next: finer, around the first of the frontier. `reason` says why, or why nothing.
[[nodiscard]] std::optional<CapturePlan> next_capture(const FrontierEvent& event,
                                                      const std::vector<RankReport>& reports,
                                                      const Manifest& manifest,
                                                      std::string& reason);

/// Ranks of a group by the text of its events ("dp.5@0-3064:8") or by the manifest; may be empty.
[[nodiscard]] std::vector<std::int64_t> group_ranks(const std::string& group_text,
                                                    const Manifest& manifest);

}  // namespace qualify::traces
