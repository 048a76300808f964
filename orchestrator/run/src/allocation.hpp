#pragma once

#include <span>

#include "accounting.hpp"
#include "execute.hpp"
#include "heartbeat.hpp"
#include "start_check.hpp"

namespace qualify::run {

/// Executes the runs of a plan that share one job, which for most plans is one run: their attempts,
/// one after the other, each submitted once, watched to its end, and assessed.
///
/// Attempts at runs that share a job have its number and nonce in common, and every event of theirs
/// is recorded for all of them in one transaction: they never get out of step.
class Allocation {
 public:
  /// Runs [first, last) of `state`, which is kept up to date; `stage`: how many runs of the plan
  /// the present stage ends after.
  Allocation(const Context& context, QualificationState& state, std::size_t first, std::size_t last,
             std::size_t stage);

  /// Errors: those of qualify_gate.
  [[nodiscard]] Result<void> drive();

 private:
  [[nodiscard]] Result<void> begin_attempt();
  [[nodiscard]] Result<void> ensure_submitted();
  [[nodiscard]] Result<bool> adopt(Duration patience);
  [[nodiscard]] Result<void> adopt_or_withdraw(Duration patience);
  [[nodiscard]] Result<void> submitted(const std::string& job_id,
                                       const std::vector<std::string>& warnings);
  [[nodiscard]] Result<void> follow();
  [[nodiscard]] Result<scheduler::Job> look(Duration pause);
  void stop_waiting_for_nodes(scheduler::Job& job) const;
  [[nodiscard]] Result<AccountedJob> ask_accounting() const;
  [[nodiscard]] Result<void> adopt_from_accounting();
  [[nodiscard]] Result<void> hold_to_grant(const scheduler::Job& job, Duration pause);
  [[nodiscard]] std::optional<std::string> hung();
  [[nodiscard]] Result<void> break_off(const scheduler::Job& job, const std::string& why,
                                       FailureClass failure_class);
  [[nodiscard]] Result<void> end_with(const scheduler::Job& job);
  [[nodiscard]] bool sees_all_results() const;
  [[nodiscard]] Result<void> wait_for_results() const;
  [[nodiscard]] Result<void> end_without_job(const Assessment& how);

  [[nodiscard]] Result<void> write_job_plans() const;
  [[nodiscard]] scheduler::JobRequest job_request(const std::string& nonce, int number,
                                                  const std::vector<std::string>& nodes) const;
  [[nodiscard]] std::filesystem::path folder_of(const RunState& run) const;

  [[nodiscard]] RunState& lead() const { return state_.runs[first_]; }
  [[nodiscard]] Attempt& attempt() const { return lead().attempts.back(); }
  [[nodiscard]] std::span<RunState> runs() const {
    return {state_.runs.data() + first_, last_ - first_};
  }
  /// One event of the present attempt for each run, recorded all or none, and taken into the state:
  /// with the same payload, or with one for each.
  [[nodiscard]] Result<void> record(const char* kind, const Json& payload);
  [[nodiscard]] Result<void> record(const char* kind, int number, std::vector<Json> payloads);
  [[nodiscard]] Result<void> ended(const scheduler::Job* job, const std::vector<Assessment>& how);

  const Context& context_;
  QualificationState& state_;
  std::size_t first_;
  std::size_t last_;
  StartCheck start_;
  std::vector<Heartbeat> heartbeats_;  ///< of the live attempts; begun anew with each
  std::vector<std::string> nodes_;     ///< where the attempt that was begun here has to be
  int intended_here_ = 0;  ///< the attempt that this process began, which has no job yet
  std::string last_seen_;  ///< the live job as it was when its reservation was last looked at
  Duration since_check_{};
  bool accounting_may_tell_ = false;  ///< how the job ended that the scheduler has forgotten
  Duration asked_accounting_{};
};

}  // namespace qualify::run
