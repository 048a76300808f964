#pragma once

#include <string>

#include "qualify/ledger/signer.hpp"
#include "qualify/run/state.hpp"
#include "qualify/standing/standing.hpp"

/// Gates that have no runs: judged by what the gates came to that they rest on.
namespace qualify::composite {

struct Outcome {
  standing::Standing standing;  ///< of the gate, after this
  std::string issued;           ///< id of the certificate that it earned now; empty without one
  std::string log_not_signed;   ///< why the log got no checkpoint with it
};

/// Judges coverage or enablement by where its parts stand now, and issues a certificate when all of
/// them are closed, unless the one there is cites just these already. What was read and what is
/// issued are one transaction. Errors: invalid_input (no such gate, or one that has runs), busy,
/// io, no_space, integrity.
[[nodiscard]] Result<Outcome> judge(run::State& state, const policy::Qualification& qualification,
                                    const std::string& gate, const ledger::Signer& signer,
                                    Time now);

}  // namespace qualify::composite
