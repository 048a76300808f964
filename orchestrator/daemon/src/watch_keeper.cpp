#include "qualify/daemon/watch_keeper.hpp"

#include <algorithm>
#include <set>

#include "qualify/plan/plan.hpp"
#include "qualify/recurrence/recurrence.hpp"
#include "qualify/run/baselines.hpp"
#include "qualify/run/progress.hpp"

namespace qualify::daemon {

namespace {

constexpr const char* kDaemon = "the daemon";
constexpr const char* kLocal = "local";  ///< the reservation of this machine

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

/// Leading runs that are complete.
std::size_t done_of(const run::QualificationState& one) {
  const auto lacking = std::find_if(one.runs.begin(), one.runs.end(), [](const auto& run) {
    return run.attempts.empty() || !run.attempts.back().complete;
  });
  return static_cast<std::size_t>(lacking - one.runs.begin());
}

std::vector<std::string> nonces_of(const run::QualificationState& one) {
  std::vector<std::string> nonces;
  for (const run::RunState& run : one.runs) {
    for (const run::Attempt& attempt : run.attempts) nonces.push_back(attempt.nonce);
  }
  return nonces;
}

/// How many runs its judge is next asked about: to the end of the stage of the last run begun.
std::size_t stage_of(const run::QualificationState& one) {
  const auto begun = static_cast<std::size_t>(
      std::count_if(one.runs.begin(), one.runs.end(),
                    [](const run::RunState& run) { return !run.attempts.empty(); }));
  const std::vector<std::size_t> stages = plan::stages(one.gate, one.plan);
  const auto stage = std::lower_bound(stages.begin(), stages.end(), begun);
  return stage == stages.end() ? stages.back() : *stage;
}

/// It goes on whatever the reservation is now: a job is live, or only evidence and verdict lack.
/// Where a further look of it is to come, it needs the reservation again.
bool is_under_way(const run::QualificationState& one) {
  if (run::is_live(one)) return true;
  const std::size_t stage = stage_of(one);
  if (run::wants_submission(one, stage)) return false;
  return stage == one.runs.size() ||
         std::any_of(one.runs.begin(), one.runs.end(), [](const run::RunState& run) {
           return !run.attempts.empty() && !run.evidence;
         });
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
    if (!*grant && !is_under_way(one)) {
      around_.say(one.name + ": unfinished, and its grant was revoked; left as it is");
      continue;
    }
    around_.say(one.name + ": unfinished; going on");
    const auto outcome = go_on_with(one);
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

Result<run::Outcome> WatchKeeper::go_on_with(const run::QualificationState& one) {
  const auto behind = around_.grant_behind(one);
  if (!behind) return tl::unexpected(behind.error());
  if (!*behind) return fail(Errc::not_found, "the grant that its plan rests on is not on record");
  const auto standing = around_.grant(one.plan.gate, one.plan.reservation);
  if (!standing) return tl::unexpected(standing.error());
  const bool stands = *standing && scheduler::fingerprint((*standing)->reservation) ==
                                       one.plan.reservation_fingerprint;
  scheduler::Scheduler* scheduler = scheduler_for(one.plan.reservation);
  if (scheduler == nullptr) {
    return fail(Errc::unsupported, "this daemon does not run gates on its own machine");
  }
  return run::qualify_gate(state_, {one.gate, one.plan.bundle, **behind, stands},
                           ports_on(*scheduler));
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
      if (armed.recurrent() && !armed.due) {
        const auto next = await_occurrence(armed);
        if (!next) return tl::unexpected(next.error());
        if (!*next) {
          again = true;
          break;
        }
        pause = std::min(pause, **next);
        continue;
      }
      const bool runs = !policy::is_composite(armed.gate.kind);  // the others wait for no machine
      if (runs && taken.count(armed.reservation) > 0) continue;
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

scheduler::Scheduler* WatchKeeper::scheduler_for(const std::string& reservation) const {
  return reservation == kLocal ? around_.local : &around_.ports.scheduler;
}

run::Ports WatchKeeper::ports_on(scheduler::Scheduler& scheduler) const {
  const run::Ports& all = around_.ports;
  return {scheduler,    all.signer,     all.clock,       all.stop,
          all.on_event, all.executable, all.environment, all.limits};
}

Result<WatchKeeper::Considered> WatchKeeper::await_occurrence(const Armed& armed) {
  const auto recurrence = recurrence::Recurrence::parse(armed.schedule, armed.time_zone);
  if (!recurrence) {
    // The machine lost the zone: the gate stays armed, for it may come back.
    around_.say("gate " + armed.gate.name + ": " + recurrence.error().describe());
    return Considered(kSlow);
  }
  const Time now = around_.ports.clock.now();
  const Time next = recurrence->next_after(armed.handled);
  if (now < next) return Considered(std::min(next - now, kSlow));
  const Time after = recurrence->next_after(next);
  if (now - next <= kLate && now < after) {
    const auto noted = note_due(state_.database, now, armed, next);
    if (!noted) return tl::unexpected(noted.error());
    if (*noted) {
      around_.say("gate " + armed.gate.name + " is due: " + recurrence->local(next));
    }
    return Considered();
  }
  const auto why = [&](Time occurrence) -> std::string {
    if (occurrence <= armed.ended && armed.ended != armed.since) {
      return "the one before was still running";
    }
    return occurrence < since_ ? "the daemon was not running"
                               : "the daemon was at work with another gate";
  };
  Missed missed{next, next, 1, why(next)};
  for (Time at = after; at <= now && (now - at > kLate || recurrence->next_after(at) <= now) &&
                        why(at) == missed.why;
       at = recurrence->next_after(at)) {
    missed.last = at;
    ++missed.count;
  }
  if (auto done = miss(armed, missed); !done) return tl::unexpected(done.error());
  return Considered();
}

Result<void> WatchKeeper::miss(const Armed& armed, const Missed& missed) {
  const std::string when = missed.count == 1
                               ? format_time(missed.first)
                               : format_time(missed.first) + " to " + format_time(missed.last) +
                                     " (" + std::to_string(missed.count) + " times)";
  const auto noted = note_missed(state_.database, around_.ports.clock.now(), armed, missed);
  if (!noted) return tl::unexpected(noted.error());
  if (*noted) around_.say("gate " + armed.gate.name + " missed " + when + ": " + missed.why);
  return {};
}

Result<WatchKeeper::Begun> WatchKeeper::begun(const Armed& armed) {
  const journal::Journal journal(state_.database);
  const auto names = journal.qualifications(armed.gate.name);
  if (!names) return tl::unexpected(names.error());
  Begun begun;
  if (names->empty()) return begun;
  const auto events = journal.events(names->back());
  if (!events) return tl::unexpected(events.error());
  auto latest = run::derive(*events);
  if (!latest) return tl::unexpected(latest.error());
  begun.of_armed = latest->plan.bundle == armed.bundle &&
                   latest->plan.policy == policy::policy_digest(armed.gate);
  const auto told = std::find_if(events->begin(), events->end(), [](const journal::Event& event) {
    return event.kind == run::event::kVerdict;
  });
  if (begun.of_armed && told != events->end() && told->sequence > armed.begun_at) {
    begun.verdict = latest->verdict;
  }
  if (latest->open()) begun.open = std::move(*latest);
  return begun;
}

Result<WatchKeeper::Considered> WatchKeeper::judge(const Armed& armed) {
  if (!around_.judge) return end(armed, "this daemon judges no gates that rest on others");
  const auto judged = around_.judge(armed);
  if (judged) return end(armed, "it was judged: " + *judged, true);
  return end(armed, judged.error().describe());
}

Result<WatchKeeper::Considered> WatchKeeper::consider(const Armed& armed) {
  if (policy::is_composite(armed.gate.kind)) return judge(armed);
  auto before = begun(armed);
  if (!before) return tl::unexpected(before.error());
  if (before->verdict) {
    return end(armed, std::string("it reached its verdict: ") + policy::name_of(*before->verdict),
               true);
  }
  if (before->open && is_under_way(*before->open)) {
    around_.say("gate " + armed.gate.name + ": going on with " + before->open->name);
    const auto outcome = go_on_with(*before->open);
    if (outcome || outcome.error().code != Errc::refused) {
      return came_of(armed, outcome, before->of_armed);
    }
    // It lacks further runs, and grant or reservation stand against them: which, is found below.
    before = begun(armed);
    if (!before) return tl::unexpected(before.error());
  }
  scheduler::Scheduler* scheduler = scheduler_for(armed.reservation);
  if (scheduler == nullptr) return end(armed, "this daemon does not run gates on its own machine");
  const auto grant = around_.grant(armed.gate.name, armed.reservation);
  if (!grant) return tl::unexpected(grant.error());
  if (!*grant) {
    return end(armed, armed.recurrent()
                          ? "reservation '" + armed.reservation + "' is not granted to the gate"
                          : "its grant was revoked");
  }
  const auto bundle = store::load(state_.bundles, armed.bundle);
  if (!bundle) return end(armed, bundle.error().describe());
  const auto plan = run::plan_gate(state_, armed.gate, *bundle, **grant);
  if (!plan) return end(armed, plan.error().describe());

  const auto snapshot = scheduler::take_snapshot(*scheduler);
  if (!snapshot) {
    // Says nothing about the reservation: nothing is given up because a query failed.
    auto& pause = pauses_[armed.gate.name];
    pause = std::clamp(pause * 2, kQuick, kSlow);
    around_.say("gate " + armed.gate.name + ": " + snapshot.error().describe());
    return Considered(pause);
  }
  const std::vector<std::size_t> stages = plan::stages(armed.gate, *plan);
  const bool goes_on = before->open && before->open->plan_digest == plan::plan_digest(*plan);
  const std::size_t done = goes_on ? done_of(*before->open) : 0;
  const auto stage = std::upper_bound(stages.begin(), stages.end(), done);
  const auto needed =
      plan::requirement(*plan, done, stage == stages.end() ? stages.back() : *stage);
  const auto faults =
      scheduler::preflight(**grant, needed, *snapshot,
                           before->open ? nonces_of(*before->open) : std::vector<std::string>());
  if (faults.empty()) return launch(armed, **grant);
  std::vector<scheduler::Fault> lasting = faults;
  std::erase_if(lasting, [](const scheduler::Fault& fault) { return fault.may_pass; });
  if (!lasting.empty()) {
    if (goes_on && !run::wants_submission(*before->open, stage_of(*before->open))) {
      // Its further look cannot come: the verdict is that of the looks that were.
      const auto outcome = go_on_with(*before->open);
      if (outcome || outcome.error().code != Errc::refused) {
        return came_of(armed, outcome, before->of_armed);
      }
    }
    return end(armed, joined(stable_words(lasting)));
  }
  if (armed.due) {
    const auto recurrence = recurrence::Recurrence::parse(armed.schedule, armed.time_zone);
    if (recurrence && recurrence->next_after(*armed.due) <= around_.ports.clock.now()) {
      return end(armed,
                 "it still waited when the next was due, for: " + joined(stable_words(faults)));
    }
  }
  return wait_for(armed, *snapshot, faults);
}

Result<WatchKeeper::Considered> WatchKeeper::wait_for(const Armed& armed,
                                                      const scheduler::Snapshot& snapshot,
                                                      const std::vector<scheduler::Fault>& faults) {
  auto& pause = pauses_[armed.gate.name];
  const std::vector<std::string> words = stable_words(faults);
  if (words != armed.waiting_for) {
    const auto noted = note_waiting(state_.database, around_.ports.clock.now(), armed, words);
    if (!noted) return tl::unexpected(noted.error());
    if (!*noted) return Considered();
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
  return came_of(armed,
                 run::qualify_gate(state_, {armed.gate, armed.bundle, grant},
                                   ports_on(*scheduler_for(armed.reservation))),
                 true);
}

Result<WatchKeeper::Considered> WatchKeeper::came_of(const Armed& armed,
                                                     const Result<run::Outcome>& outcome,
                                                     bool of_armed) {
  const std::string gate = "gate " + armed.gate.name + ": ";
  if (outcome) {
    if (!outcome->log_not_signed.empty()) {
      around_.say(gate + "the log was not signed: " + outcome->log_not_signed);
    }
    const std::string verdict = policy::name_of(outcome->judgement.verdict);
    if (of_armed) return end(armed, "it reached its verdict: " + verdict, true);
    around_.say(outcome->state.name + ": " + verdict);
    return Considered(kQuick);
  }
  const Error& error = outcome.error();
  if (around_.ports.stop() != run::Stop::none) return tl::unexpected(error);
  switch (error.code) {
    case Errc::unavailable:  // the controller, for longer than the engine waits
    case Errc::busy:         // another qualify runs a gate of this state
    case Errc::refused:      // the preflight between two runs: looked at again at once
      around_.say(gate + error.describe());
      return Considered(kQuick);
    default:
      break;
  }
  const auto open = run::open_qualifications(state_.database, armed.gate.name);
  if (open && !open->empty() && run::is_live(open->front())) {
    // Never left alone because something went wrong here.
    around_.say(gate + error.describe() + "; its job goes on");
    return Considered(kSlow);
  }
  return end(armed, error.describe());
}

Result<WatchKeeper::Considered> WatchKeeper::end(const Armed& armed, const std::string& why,
                                                 bool reached) {
  pauses_.erase(armed.gate.name);
  if (armed.due) {
    if (!reached) {
      if (auto noted = miss(armed, {*armed.due, *armed.due, 1, why}); !noted) {
        return tl::unexpected(noted.error());
      }
      return Considered();
    }
    const auto noted =
        note_done(state_.database, around_.ports.clock.now(), armed, *armed.due, why);
    if (!noted) return tl::unexpected(noted.error());
    around_.say("gate " + armed.gate.name + ": " + why +
                (*noted ? "; it stays armed" : "; it was disarmed meanwhile"));
    return Considered();
  }
  const auto noted = note_disarmed(state_.database, around_.ports.clock.now(), armed, kDaemon, why);
  if (!noted) return tl::unexpected(noted.error());
  around_.say("gate " + armed.gate.name +
              (*noted ? " is disarmed: " + why : ": " + why + "; it was disarmed meanwhile"));
  return Considered();
}

}  // namespace qualify::daemon
