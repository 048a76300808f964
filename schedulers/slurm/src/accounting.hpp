#pragma once

#include <string>
#include <vector>

#include "qualify/scheduler/types.hpp"

namespace qualify::scheduler::slurm {

/// Our own jobs of this full name on this cluster that ended at `since` or later, or have not
/// ended, from slurmdbd through libslurmdb. A number that Slurm gave to a later job hides nothing;
/// a job that was requeued is one job with a restart count. Errors: unavailable, with libslurm's
/// words.
[[nodiscard]] Result<std::vector<Job>> accounted_jobs(const std::string& cluster,
                                                      const std::string& name,
                                                      const std::string& nonce, Time since);

}  // namespace qualify::scheduler::slurm
