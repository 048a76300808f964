#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "qualify/daemon/arming.hpp"
#include "qualify/run/qualification.hpp"

namespace qualify::daemon {

/// What the keeper asks of others.
struct Surroundings {
  run::Ports ports;  ///< its scheduler is the one of reservations
  /// This machine's scheduler, for gates that are due on it; null: there is none.
  scheduler::Scheduler* local = nullptr;
  /// The standing grant of a reservation to a gate; empty: none, or revoked. For "local" the grant
  /// is made and recorded when it is asked for.
  std::function<Result<std::optional<scheduler::Grant>>(const std::string& gate,
                                                        const std::string& reservation)>
      grant;
  /// The grant that a qualification's plan rests on, whether or not it stands still; empty: it is
  /// not on record.
  std::function<Result<std::optional<scheduler::Grant>>(const run::QualificationState&)>
      grant_behind;
  std::function<void(const std::string&)> say;  ///< one line for the log
  /// Judges a gate that rests on others, by the file of gates that it was armed with; what it is
  /// then ("pass"). Null: nobody here does.
  std::function<Result<std::string>(const Armed&)> judge = {};
};

/// Looks after armed gates: each is launched when its reservation is active and healthy, one after
/// the other in the order of arming, and given up with the reason when that cannot come any more.
/// A recurrent one is launched so at each of its occurrences, and stays armed. An occurrence that
/// cannot be launched (no grant, the one before still runs or waits, no daemon at its time) is
/// recorded and said once, and never made up for.
/// What is under way comes before all that: a live job is followed to its end, and what has all its
/// runs is judged, whatever became of the reservation and the grant.
/// Not thread-safe: one thread, and one keeper a state.
class WatchKeeper {
 public:
  /// A reservation that is about to start is looked at this often: what lies between its start and
  /// the submission is at most this and one preflight.
  static constexpr Duration kQuick = std::chrono::milliseconds(500);
  static constexpr Duration kSlow = std::chrono::seconds(30);
  /// An occurrence that is found so much later is missed.
  static constexpr Duration kLate = std::chrono::minutes(10);

  WatchKeeper(run::State& state, Surroundings surroundings)
      : state_(state), around_(std::move(surroundings)), since_(around_.ports.clock.now()) {}

  /// Goes on with what an earlier process left unfinished and is not armed (look() does with what
  /// is). Errors: interrupted (stop), and those
  /// of the database; what keeps a single gate from going on is said, and no error.
  [[nodiscard]] Result<void> go_on();

  /// One look at everything that is armed; launches what may start, and stays with it to its
  /// verdict. Returns when to look again. Errors: as go_on().
  [[nodiscard]] Result<Duration> look();

 private:
  /// When to look at the gate again; nothing: it is armed no more.
  using Considered = std::optional<Duration>;
  Result<Considered> consider(const Armed& armed);
  Result<Considered> judge(const Armed& armed);
  Result<Considered> launch(const Armed& armed, const scheduler::Grant& grant);
  /// By the grant that its plan rests on; where that one does not stand any more, nothing further
  /// is submitted. Errors: those of qualify_gate, not_found (the grant).
  Result<run::Outcome> go_on_with(const run::QualificationState& one);
  /// What came of it; `of_armed`: the verdict is that of what was armed.
  Result<Considered> came_of(const Armed& armed, const Result<run::Outcome>& outcome,
                             bool of_armed);
  /// The end of what was armed, or of the occurrence; `reached`: with a verdict.
  Result<Considered> end(const Armed& armed, const std::string& why, bool reached = false);
  /// Of a recurrent gate that nothing is begun of: begins an occurrence, or records what was missed
  /// (nothing: the list has changed), or says how long it is to the next.
  Result<Considered> await_occurrence(const Armed& armed);
  Result<void> miss(const Armed& armed, const Missed& missed);
  scheduler::Scheduler* scheduler_for(const std::string& reservation) const;
  run::Ports ports_on(scheduler::Scheduler& scheduler) const;
  Result<Considered> wait_for(const Armed& armed, const scheduler::Snapshot& snapshot,
                              const std::vector<scheduler::Fault>& faults);
  /// What became of the gate so far.
  struct Begun {
    std::optional<run::QualificationState> open;  ///< its unfinished qualification
    bool of_armed = false;                        ///< that one is of what was armed
    /// Reached after `armed` let it, for what was armed: the verdict that a process which was
    /// killed just then did not get to tell.
    std::optional<policy::Verdict> verdict;
  };
  Result<Begun> begun(const Armed& armed);

  run::State& state_;
  Surroundings around_;
  Time since_;                              ///< when this keeper began
  std::map<std::string, Duration> pauses_;  ///< by gate: grows while nothing changes
};

}  // namespace qualify::daemon
