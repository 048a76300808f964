#pragma once

#include "qualify/scheduler/types.hpp"
#include "version.hpp"

namespace qualify::scheduler::slurm {

/// src/batch.sh, embedded at build.
extern const char* const kBatchScript;

/// What a job is called: accounting keeps names, but no comments unless told to.
[[nodiscard]] std::string job_name(const std::string& name, const std::string& nonce);

/// One submit call. Errors: invalid_input (a request that would not stay in its reservation);
/// refused (the controller said no: there is no job); unavailable (there may be one).
[[nodiscard]] Result<Submission> submit(const JobRequest& request);

/// Asks the controller whether it would take this request, without submitting it (each question
/// uses up a job number). Errors: as submit().
[[nodiscard]] Result<void> would_accept(const JobRequest& request);

}  // namespace qualify::scheduler::slurm
