#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "qualify/base/error.hpp"
#include "qualify/traces/localize.hpp"

namespace qualify::traces {

struct TimelineOptions {
  std::vector<std::int64_t> ranks;  ///< empty: all
  std::int64_t from_iteration = 0;
  std::int64_t to_iteration = INT64_MAX;
};

/// Events as a timeline for Perfetto and chrome://tracing (Trace Event Format, JSON object form),
/// one process a rank and run, so that two runs of a rank lie side by side; the frontier of `found`
/// is marked. Each run's clock begins at its first event; where no times were recorded, an event's
/// place in the rank's sequence stands for them, one microsecond each. b, found: null where there
/// is no second run. Returns how many events were written. Errors: invalid_input (none of the ranks
/// or iterations is there), those of reading, the sink's.
using TextSink = std::function<Result<void>(std::string_view)>;
[[nodiscard]] Result<std::uint64_t> write_timeline(const TraceSet& a, const TraceSet* b,
                                                   const Localization* found,
                                                   const TimelineOptions& options,
                                                   const TextSink& sink);

}  // namespace qualify::traces
