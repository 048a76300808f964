#pragma once

#include <optional>
#include <string>

#include "qualify/ledger/ledger.hpp"
#include "qualify/run/progress.hpp"
#include "qualify/scheduler/grant.hpp"
#include "session.hpp"

/// Grants as signed records of the ledger.
namespace qualify::cli {

/// The reservation as the controller sees it now. Errors: not_found (or not visible), unavailable.
[[nodiscard]] Result<scheduler::Reservation> find_reservation(scheduler::Scheduler& scheduler,
                                                              const std::string& name);

/// Signs and logs a grant. Errors: refused when the reservation's shape cannot keep the promise.
[[nodiscard]] Result<ledger::Record> record_grant(Session& session, run::State& state,
                                                  const std::string& gate,
                                                  scheduler::Scheduler& scheduler,
                                                  const scheduler::Reservation& reservation);

/// The latest grant of this reservation to this gate that is not revoked; its signature is checked.
/// Errors: integrity, io.
[[nodiscard]] Result<std::optional<scheduler::Grant>> current_grant(run::State& state,
                                                                    const std::string& gate,
                                                                    const std::string& reservation);

/// The grant that a qualification's plan rests on, whether it was revoked since or not; its
/// signature is checked. Empty: it is not on record. Errors: integrity, io.
[[nodiscard]] Result<std::optional<scheduler::Grant>> grant_behind(
    run::State& state, const run::QualificationState& one);

/// Revokes every standing grant of this reservation to this gate, on the record; nothing that waits
/// or runs is touched. Returns how many there were. Errors: integrity, io.
[[nodiscard]] Result<std::size_t> revoke_grants(Session& session, run::State& state,
                                                const std::string& gate,
                                                const std::string& reservation);

/// The grant that a plan rests on. Locally whoever starts a run grants the machine, on the record;
/// on Slurm an operator's grant must be there. Errors: refused (no grant; says how to get one).
[[nodiscard]] Result<scheduler::Grant> grant_for_run(Session& session, run::State& state,
                                                     scheduler::Scheduler& scheduler,
                                                     const std::string& gate,
                                                     const std::string& reservation);

}  // namespace qualify::cli
