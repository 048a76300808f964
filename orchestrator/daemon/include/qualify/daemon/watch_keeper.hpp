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
  run::Ports ports;
  /// The standing grant of a reservation to a gate; empty: none, or revoked.
  std::function<Result<std::optional<scheduler::Grant>>(const std::string& gate,
                                                        const std::string& reservation)>
      grant;
  std::function<void(const std::string&)> say;  ///< one line for the log
};

/// Looks after armed gates: each is launched when its reservation is active and healthy, one after
/// the other in the order of arming, and given up with the reason when that cannot come any more.
/// Not thread-safe: one thread, and one keeper a state.
class WatchKeeper {
 public:
  /// A reservation that is about to start is looked at this often: what lies between its start and
  /// the submission is at most this and one preflight.
  static constexpr Duration kQuick = std::chrono::milliseconds(500);
  static constexpr Duration kSlow = std::chrono::seconds(30);

  WatchKeeper(run::State& state, Surroundings surroundings)
      : state_(state), around_(std::move(surroundings)) {}

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
  Result<Considered> launch(const Armed& armed, const scheduler::Grant& grant);
  Result<Considered> give_up(const Armed& armed, const std::string& why);
  Result<Considered> wait_for(const Armed& armed, const scheduler::Snapshot& snapshot,
                              const std::vector<scheduler::Fault>& faults);
  /// What an earlier process has done of the gate's unfinished qualification.
  struct Begun {
    bool live = false;                ///< an attempt has not ended: to be re-attached to
    std::size_t done = 0;             ///< leading runs that are complete
    std::vector<std::string> nonces;  ///< of all its attempts
  };
  Result<Begun> begun(const std::string& gate);

  run::State& state_;
  Surroundings around_;
  std::map<std::string, Duration> pauses_;  ///< by gate: grows while nothing changes
};

}  // namespace qualify::daemon
