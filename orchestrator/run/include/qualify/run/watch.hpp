#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "qualify/run/evidence.hpp"
#include "qualify/scheduler/grant.hpp"

/// What holds a live job to its grant (launch contract, steps 4 to 7). Pure, but for the claim.
namespace qualify::run {

/// How long a job may wait inside an active reservation on usable, free nodes before it is given
/// up: a job whose access was taken away stays pending for ever.
inline constexpr Duration kPendingPatience = std::chrono::minutes(10);

/// Why this job must not go on, with the fact; nothing while all is well. `now`, `reservations`:
/// what the controller says at this moment. A job in a breach is cancelled, never released or
/// requeued.
[[nodiscard]] std::optional<std::string> breach(
    const scheduler::Grant& grant, const scheduler::Job& job, Time now,
    const std::vector<scheduler::Reservation>& reservations, Duration patience = kPendingPatience);

/// What the scheduler's last word says against the grant, apart from how the work ended: it ran
/// outside, was restarted, or was cut off by the reservation's end (which Slurm calls a timeout).
/// Nothing: assess() decides.
[[nodiscard]] std::optional<Assessment> against_grant(const scheduler::Grant& grant,
                                                      const scheduler::Job& job);

/// Who owns an attempt's folder: the first one to ask, for ever. A job claims it as its first act;
/// an engine that gave up on a lost submit withdraws it, and a job that still appears then does
/// nothing. One file, made with O_EXCL, which is atomic on local disks, NFS 3 and later, Lustre and
/// GPFS. Errors: already_exists (context: who), io.
[[nodiscard]] Result<void> claim_attempt(const std::filesystem::path& folder,
                                         const std::string& owner);
/// The engine's claim, when it found no job; ok also when an engine made it before.
[[nodiscard]] Result<void> withdraw_attempt(const std::filesystem::path& folder);

}  // namespace qualify::run
