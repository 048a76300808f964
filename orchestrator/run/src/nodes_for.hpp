#pragma once

#include <optional>
#include <string>
#include <vector>

#include "qualify/run/progress.hpp"
#include "qualify/scheduler/grant.hpp"

namespace qualify::run {

/// Where the next attempt at a run has to be.
struct Place {
  std::vector<std::string> nodes;         ///< exactly these; empty = any of the reservation
  std::optional<scheduler::Fault> fault;  ///< there is no such place now
};

/// What the plan asks (the nodes of an earlier run, others than those, or nodes by name), and after
/// an attempt that its nodes or the scheduler ended, other nodes than before wherever the
/// reservation has enough of them. Pure.
[[nodiscard]] Place place_for(const QualificationState& state, const RunState& run,
                              const scheduler::Grant& grant, const scheduler::Snapshot& snapshot);

}  // namespace qualify::run
