#pragma once

#include "gate_options.hpp"
#include "session.hpp"

namespace qualify::cli {

/// Judges a gate that rests on others by where they stand now; prints each cell or blocker with why
/// it is open, what to do next, and the certificate that a pass earns.
[[nodiscard]] Result<Exit> judge_composite(Session& session, run::State& state,
                                           const policy::Gate& gate, const GateOptions& options);

}  // namespace qualify::cli
