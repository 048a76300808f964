#pragma once

#include <memory>
#include <string>
#include <vector>

#include "qualify/scheduler/grant.hpp"
#include "qualify/scheduler/types.hpp"

namespace qualify::scheduler {

/// A place that runs jobs inside reservations. Backends: local (this machine), slurm (a module
/// loaded at run time), fake (scripted). tests/conformance holds what all of them must do.
///
/// Every call may block for a few seconds; none retries. Not thread-safe: one owner.
/// Errors: unavailable when the scheduler does not answer (the state of the world is then unknown,
/// and nothing may be cancelled or resubmitted because of it); refused when it said no; not_found.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  /// "local", "slurm", "fake".
  [[nodiscard]] virtual std::string kind() const = 0;
  /// One line for `doctor` and certificates: "slurm 22.05.8, cluster NAME, controller HOST".
  [[nodiscard]] virtual Result<std::string> describe() = 0;
  /// The controller's clock, never ours.
  [[nodiscard]] virtual Result<Time> now() = 0;

  [[nodiscard]] virtual Result<std::vector<Reservation>> reservations() = 0;
  [[nodiscard]] virtual Result<std::vector<Node>> nodes() = 0;
  /// All jobs that the scheduler still knows, foreign ones too. One bulk request.
  [[nodiscard]] virtual Result<std::vector<Job>> jobs() = 0;

  /// Whether the scheduler would take this request now, by its own rules of access. Starts nothing;
  /// says nothing about when the job would run. Errors: refused (the scheduler's reason),
  /// unavailable.
  [[nodiscard]] virtual Result<void> would_accept(const JobRequest& request) = 0;
  /// Starts one job. `unavailable` means that it may or may not exist: look with find() before any
  /// other step. `refused` means that nothing runs or will: there is no job, or a record of one
  /// that failed.
  [[nodiscard]] virtual Result<Submission> submit(const JobRequest& request) = 0;
  /// Every job that carries this nonce, live or still remembered.
  [[nodiscard]] virtual Result<std::vector<Job>> find(const std::string& nonce) = 0;
  /// What accounting remembers of this nonce's job: for jobs that the scheduler itself has
  /// forgotten. `name`: the request's; `since`: no job of that name ended before. Accounting may be
  /// absent and lags behind: an empty answer, or a job that is not over, says nothing. Errors:
  /// unsupported (it is not configured here), unavailable.
  [[nodiscard]] virtual Result<std::vector<Job>> accounted(const std::string& name,
                                                           const std::string& nonce, Time since);
  /// Ends the job of this id, if it carries this nonce: ids are used again, and by now this one may
  /// be somebody else's. Idempotent: a job that has ended, is unknown or is another's is ok.
  [[nodiscard]] virtual Result<void> cancel(const std::string& job_id,
                                            const std::string& nonce) = 0;
};

/// All that preflight() asks for, in four requests. Errors: those of the scheduler.
[[nodiscard]] Result<Snapshot> take_snapshot(Scheduler& scheduler);

/// Interface version of run-time modules; a module built for another one is not loaded.
inline constexpr int kModuleInterface = 4;

/// Every module exports these with C linkage:
///   int qualify_scheduler_interface();              returns its kModuleInterface
///   const char* qualify_scheduler_description();    "slurm (libslurm 22.05.8)"
///   qualify::scheduler::Scheduler* qualify_scheduler_create(qualify::Error* error);
///                                                   owned by the caller; null with *error set
}  // namespace qualify::scheduler
