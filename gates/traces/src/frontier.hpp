#pragma once

#include <cstdint>
#include <vector>

/// What happened before what, over ranks: only collectives and point-to-point operations order
/// events of two ranks (Lamport: Time, clocks, and the ordering of events, 1978). Internal.
namespace qualify::traces {

/// One rank's part in one operation. Positions are indices into the rank's own events.
struct Crossing {
  std::uint64_t operation = 0;  ///< the same on all members: group, number, operation
  std::uint32_t rank = 0;       ///< index into the ranks that are ordered
  std::uint32_t enters = 0;     ///< what differs before this goes into it …
  std::uint32_t leaves = 0;     ///< … and from here on what comes out of it may differ
  bool gives = true;            ///< a receiver gives nothing
  bool takes = true;            ///< a sender takes nothing
};

inline constexpr std::uint32_t kNever = UINT32_MAX;

/// first[r]: position of rank r's first difference, kNever where there is none. Returns for each
/// rank the earliest position at which a difference of another rank could have reached it.
[[nodiscard]] std::vector<std::uint32_t> earliest_arrivals(const std::vector<std::uint32_t>& first,
                                                           std::vector<Crossing> crossings);

}  // namespace qualify::traces
