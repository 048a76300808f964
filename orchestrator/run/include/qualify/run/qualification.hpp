#pragma once

#include <functional>
#include <map>
#include <string>

#include "qualify/base/clock.hpp"
#include "qualify/ledger/ledger.hpp"
#include "qualify/run/evidence.hpp"
#include "qualify/run/progress.hpp"
#include "qualify/run/state.hpp"
#include "qualify/run/watch.hpp"
#include "qualify/scheduler/scheduler.hpp"

namespace qualify::run {

/// What a signal asked for.
enum class Stop {
  none,
  cancel,  ///< Ctrl-C: end the live job, leave no process behind
  detach,  ///< SIGTERM, SIGHUP: leave the live job alone; `run` or `resume` re-attaches
};

/// How long things may take before the engine acts.
struct Limits {
  /// A job that waits inside its active reservation.
  Duration pending_patience = kPendingPatience;
  /// A job that may or may not exist is looked for, counted while the controller answers. Slurm's
  /// own message timeout is 10 s unless configured longer.
  Duration look_for_lost = std::chrono::seconds(30);
  /// The same for a first start: a reservation in the future, a node that is being repaired.
  Duration start_wait{};
  /// What stands against a further run of a plan that is under way, and may pass by itself (nodes
  /// that a restarted controller has not heard of yet), is waited for.
  Duration settle = std::chrono::minutes(2);
  /// Accounting is asked for a job that the scheduler has forgotten, for so long: it lags behind,
  /// or is down. Beyond it nobody can say how the job ended.
  Duration accounting = std::chrono::minutes(2);
  /// What nodes wrote, and a shared file system does not show here yet, is waited for at the end of
  /// a job.
  Duration slow_files = std::chrono::seconds(30);
  /// A job whose work has ended, but whose nodes the scheduler does not get clear (an epilog hangs,
  /// a node is gone): beyond it the job is judged by how its work ended.
  Duration completing = std::chrono::minutes(10);
  /// A scheduler that does not answer is waited for, before the run is left to `resume`.
  Duration silence = std::chrono::minutes(30);
};

/// Everything that a qualification touches beside its state folder.
struct Ports {
  scheduler::Scheduler& scheduler;
  const ledger::Signer& signer;
  Clock& clock;
  /// Asked between any two steps, and while large files are read: also a sign of life.
  std::function<Stop()> stop;
  std::function<void(const journal::Event&)> on_event;  ///< every journal event, for progress
  std::string executable;                               ///< absolute path of this qualify
  std::map<std::string, std::string> environment;       ///< handed to jobs (filtered there)
  Limits limits{};
};

struct Request {
  policy::Gate gate;
  Digest bundle;
  scheduler::Grant grant;
  /// False: what is live is followed to its end and what is there is judged, but nothing is
  /// submitted, for the grant does not stand any more.
  bool may_submit = true;
};

struct Outcome {
  QualificationState state;
  policy::Judgement judgement;
  std::string certificate;     ///< ledger id; empty without one
  std::string no_certificate;  ///< why a pass got none (dirty bundle)
  std::string log_not_signed;  ///< why the log got no checkpoint with it: until the next one the
                               ///< certificate has no proof of inclusion
};

/// Judges the collected runs by the criteria that were recorded before the first one, from the
/// evidence store alone. The same evidence gives the same judgement at any later time.
/// `scratch`, `keep_on`: as of load_evidence. Errors: those of load_evidence.
[[nodiscard]] Result<policy::Judgement> judge_recorded(const State& state,
                                                       const QualificationState& done,
                                                       const std::filesystem::path& scratch,
                                                       const KeepOn& keep_on = {});

/// The whole of it: plan, runs, evidence, verdict, certificate. An unfinished qualification of the
/// same plan is gone on with; nothing of it is repeated.
/// Errors: refused (preflight faults, with all of them; another plan of the gate has a live job;
/// a run is to be submitted that may not), busy (another qualify runs this state),
/// interrupted (stop), unavailable, io, no_space, integrity, invalid_input.
[[nodiscard]] Result<Outcome> qualify_gate(State& state, const Request& request,
                                           const Ports& ports);

}  // namespace qualify::run
