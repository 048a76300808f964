#pragma once

#include "qualify/base/digest.hpp"
#include "qualify/run/qualification.hpp"
#include "session.hpp"

namespace qualify::cli {

/// A gate to its verdict, new or gone on with, and the verdict printed: what `run` and `resume` do.
/// `reservation`: empty for this machine. Errors: those of run::qualify_gate, and of the grant.
[[nodiscard]] Result<Exit> conduct(Session& session, run::State& state, const policy::Gate& gate,
                                   const Digest& bundle, const std::string& reservation, bool json,
                                   const run::Limits& limits = {});

}  // namespace qualify::cli
