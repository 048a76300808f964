#pragma once

#include "qualify/base/digest.hpp"
#include "qualify/run/qualification.hpp"
#include "session.hpp"

namespace qualify::cli {

/// A gate to its verdict, new or gone on with, and the verdict printed: what `run` and `resume` do.
/// `reservation`: empty for this machine. `unfinished`: what is gone on with; its live job is
/// followed to its end though its grant does not stand any more. Errors: those of
/// run::qualify_gate, and of the grant.
[[nodiscard]] Result<Exit> conduct(Session& session, run::State& state, const policy::Gate& gate,
                                   const Digest& bundle, const std::string& reservation, bool json,
                                   const run::Limits& limits = {},
                                   const run::QualificationState* unfinished = nullptr);

/// The same without a word on the verdict; what the log lacks is said.
[[nodiscard]] Result<run::Outcome> run_to_verdict(
    Session& session, run::State& state, const policy::Gate& gate, const Digest& bundle,
    const std::string& reservation, const run::Limits& limits = {},
    const run::QualificationState* unfinished = nullptr);

}  // namespace qualify::cli
