#include "qualify/daemon/watch_keeper.hpp"

#include <algorithm>
#include <set>

#include "qualify/plan/plan.hpp"
#include "qualify/run/progress.hpp"

namespace qualify::daemon {

namespace {

constexpr const char* kDaemon = "the daemon";

/// What is worth telling once: the controller's clock runs on in some messages.
std::vector<std::string> stable_words(const std::vector<scheduler::Fault>& faults) {
  std::vector<std::string> words;
  for (const scheduler::Fault& fault : faults) {
    words.push_back(fault.code == "not-started" ? "its start" : fault.message);
  }
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : "; ") + word;
  return text;
}

}  // namespace

Result<void> WatchKeeper::go_on() {
  const auto open = run::open_qualifications(state_.database);
  if (!open) return tl::unexpected(open.error());
  const auto armed = armed_gates(state_.database);
  if (!armed) return tl::unexpected(armed.error());
  for (const run::QualificationState& one : *open) {
    if (one.plan.scheduler != around_.ports.scheduler.kind()) continue;
    if (std::any_of(armed->begin(), armed->end(),
                    [&](const Armed& gate) { return gate.gate.name == one.plan.gate; })) {
      continue;
    }
    const auto grant = around_.grant(one.plan.gate, one.plan.reservation);
    if (!grant) return tl::unexpected(grant.error());
    if (!*grant) {
      around_.say(one.name + ": unfinished, and its grant was revoked; left as it is");
      continue;
    }
    around_.say(one.name + ": unfinished; going on");
    const auto outcome =
        run::qualify_gate(state_, {one.gate, one.plan.bundle, **grant}, around_.ports);
    if (outcome) {
      around_.say(one.name + ": " + policy::name_of(outcome->judgement.verdict));
    } else if (around_.ports.stop() != run::Stop::none) {
      return tl::unexpected(outcome.error());
    } else {
      around_.say(one.name + ": cannot go on: " + outcome.error().describe());
    }
  }
  return {};
}

Result<Duration> WatchKeeper::look() {
  Duration pause = kSlow;
  std::set<std::string> looked;  // gates already considered: a launch may take hours
  for (bool again = true; again;) {
    again = false;
    const auto all = armed_gates(state_.database);
    if (!all) return tl::unexpected(all.error());
    std::set<std::string> taken;  // reservations whose first gate still waits
    for (const Armed& armed : *all) {
      if (taken.count(armed.reservation) > 0) continue;
      if (!looked.insert(armed.gate.name).second) {
        taken.insert(armed.reservation);
        continue;
      }
      const auto considered = consider(armed);
      if (!considered) return tl::unexpected(considered.error());
      if (const Considered& next = *considered) {
        taken.insert(armed.reservation);
        pause = std::min(pause, *next);
        continue;
      }
      again = true;  // the list has changed, and time has passed
      break;
    }
  }
  return pause;
}

Result<WatchKeeper::Begun> WatchKeeper::begun(const std::string& gate) {
  const auto open = run::open_qualifications(state_.database, gate);
  if (!open) return tl::unexpected(open.error());
  Begun begun;
  for (const run::QualificationState& one : *open) {
    bool whole = true;
    for (const run::RunState& run : one.runs) {
      whole = whole && !run.attempts.empty() && run.attempts.back().complete;
      begun.done += whole ? 1 : 0;
      for (const run::Attempt& attempt : run.attempts) {
        begun.nonces.push_back(attempt.nonce);
        begun.live = begun.live || !attempt.ended;
      }
    }
  }
  return begun;
}

Result<WatchKeeper::Considered> WatchKeeper::consider(const Armed& armed) {
  const auto grant = around_.grant(armed.gate.name, armed.reservation);
  if (!grant) return tl::unexpected(grant.error());
  if (!*grant) return give_up(armed, "its grant was revoked");
  const auto bundle = store::load(state_.bundles, armed.bundle);
  if (!bundle) return give_up(armed, bundle.error().describe());
  const auto plan = plan::expand(armed.gate, *bundle, **grant);
  if (!plan) return give_up(armed, plan.error().describe());

  const auto before = begun(armed.gate.name);
  if (!before) return tl::unexpected(before.error());
  // Re-attach first, whatever the reservation is now.
  if (before->live) return launch(armed, **grant);

  const auto snapshot = scheduler::take_snapshot(around_.ports.scheduler);
  if (!snapshot) {
    // Says nothing about the reservation: nothing is given up because a query failed.
    auto& pause = pauses_[armed.gate.name];
    pause = std::clamp(pause * 2, kQuick, kSlow);
    around_.say("gate " + armed.gate.name + ": " + snapshot.error().describe());
    return Considered(pause);
  }
  const std::vector<std::size_t> stages = plan::stages(armed.gate, *plan);
  const auto stage = std::upper_bound(stages.begin(), stages.end(), before->done);
  const auto needed =
      plan::requirement(*plan, before->done, stage == stages.end() ? stages.back() : *stage);
  const auto faults = scheduler::preflight(**grant, needed, *snapshot, before->nonces);
  if (faults.empty()) return launch(armed, **grant);
  std::vector<scheduler::Fault> lasting = faults;
  std::erase_if(lasting, [](const scheduler::Fault& fault) { return fault.may_pass; });
  if (!lasting.empty()) return give_up(armed, joined(stable_words(lasting)));
  return wait_for(armed, *snapshot, faults);
}

Result<WatchKeeper::Considered> WatchKeeper::wait_for(const Armed& armed,
                                                      const scheduler::Snapshot& snapshot,
                                                      const std::vector<scheduler::Fault>& faults) {
  auto& pause = pauses_[armed.gate.name];
  const std::vector<std::string> words = stable_words(faults);
  if (words != armed.waiting_for) {
    if (auto noted =
            note_waiting(state_.database, around_.ports.clock.now(), armed.gate.name, words);
        !noted) {
      return tl::unexpected(noted.error());
    }
    around_.say("gate " + armed.gate.name + " waits for: " + joined(words));
    pause = kQuick;
  } else {
    pause = std::clamp(pause * 2, kQuick, kSlow);
  }
  Duration next = pause;
  for (const scheduler::Reservation& reservation : snapshot.reservations) {
    if (reservation.name != armed.reservation) continue;
    if (snapshot.now < reservation.start) {
      next = std::clamp(reservation.start - snapshot.now, kQuick, kSlow);
    } else {
      next = std::min(next, std::chrono::duration_cast<Duration>(std::chrono::seconds(5)));
    }
  }
  return Considered(next);
}

Result<WatchKeeper::Considered> WatchKeeper::launch(const Armed& armed,
                                                    const scheduler::Grant& grant) {
  around_.say("gate " + armed.gate.name + ": launching on reservation " + armed.reservation);
  const auto outcome = run::qualify_gate(state_, {armed.gate, armed.bundle, grant}, around_.ports);
  if (outcome) {
    return give_up(armed, std::string("it reached its verdict: ") +
                              policy::name_of(outcome->judgement.verdict));
  }
  const Error& error = outcome.error();
  if (around_.ports.stop() != run::Stop::none) return tl::unexpected(error);
  switch (error.code) {
    case Errc::unavailable:  // the controller, for longer than the engine waits
    case Errc::busy:         // another qualify runs a gate of this state
    case Errc::refused:      // the preflight between two runs: looked at again at once
      around_.say("gate " + armed.gate.name + ": " + error.describe());
      return Considered(kQuick);
    default:
      return give_up(armed, error.describe());
  }
}

Result<WatchKeeper::Considered> WatchKeeper::give_up(const Armed& armed, const std::string& why) {
  pauses_.erase(armed.gate.name);
  around_.say("gate " + armed.gate.name + " is disarmed: " + why);
  auto done = disarm(state_.database, around_.ports.clock.now(), armed.gate.name, kDaemon, why);
  if (!done && done.error().code != Errc::not_found) return tl::unexpected(done.error());
  return Considered();
}

}  // namespace qualify::daemon
