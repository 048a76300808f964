#pragma once

#include <filesystem>
#include <memory>

#include "qualify/scheduler/scheduler.hpp"

namespace qualify::scheduler {

struct LocalOptions {
  std::filesystem::path folder;        ///< of this state: holds one folder a job, by nonce
  std::filesystem::path machine_lock;  ///< one file for the whole machine, shared by all states
  std::string host;
  std::string user;
};

/// The machine itself as a cluster of one node, and its one reservation, "local": an exclusive lock
/// held by whichever job runs. Jobs outlive the process that submitted them; any later process
/// finds them by nonce. A job that another state runs is reported as foreign.
///
/// Each job has a supervisor (a process of its own session) that starts it, enforces the time
/// limit, and leaves nothing behind of what it started. `JobRequest::executable` must understand
/// `local-supervisor FOLDER`, which calls supervise_local_job.
[[nodiscard]] std::unique_ptr<Scheduler> make_local(LocalOptions options, Clock& clock);

/// The supervisor's whole life; returns its exit code. Called in a fresh single-threaded process.
/// It goes to the background: the calling process ends as soon as the job is known to have started
/// (0) or to have been started before (3).
[[nodiscard]] int supervise_local_job(const std::filesystem::path& job_folder, Clock& clock);

}  // namespace qualify::scheduler
