#include "gate_standing.hpp"

#include <algorithm>

namespace qualify::standing {

namespace {

using certify::Decision;

Status status_of(policy::Verdict verdict) {
  switch (verdict) {
    case policy::Verdict::pass:
      return Status::pass;
    case policy::Verdict::fail:
      return Status::fail;
    case policy::Verdict::inconclusive:
      return Status::inconclusive;
    case policy::Verdict::needs_decision:
      return Status::needs_decision;
    case policy::Verdict::blocked:
      return Status::blocked;
  }
  return Status::inconclusive;
}

const Facts::Bundle* sealed(const Facts& facts, const Digest& digest) {
  const auto found = std::find_if(facts.bundles.begin(), facts.bundles.end(),
                                  [&](const Facts::Bundle& each) { return each.digest == digest; });
  return found == facts.bundles.end() ? nullptr : &*found;
}

/// The last seal of the same name, recipe class and topology: what is qualified from now on. One
/// of another class or size is no successor, it answers other gates.
const Facts::Bundle* successor(const Facts& facts, const Digest& digest) {
  const Facts::Bundle* was = sealed(facts, digest);
  if (was == nullptr) return nullptr;
  for (auto each = facts.bundles.rbegin(); each != facts.bundles.rend(); ++each) {
    if (each->name != was->name || each->recipe != was->recipe ||
        each->topology.nodes != was->topology.nodes ||
        each->topology.gpus_per_node != was->topology.gpus_per_node) {
      continue;
    }
    return each->digest == digest ? nullptr : &*each;
  }
  return nullptr;
}

std::string run_command(const run::QualificationState& state, const std::string& bundle) {
  return "qualify run " + state.plan.gate + " --bundle " + bundle +
         (state.plan.scheduler == "local" ? std::string()
                                          : " --reservation " + state.plan.reservation);
}

std::string bundle_word(const Standing& standing) {
  if (!standing.bundle) return "BUNDLE";
  return standing.bundle_name.empty() ? standing.bundle->brief() : standing.bundle_name;
}

/// Where an unfinished one is.
std::string progress_of(const run::QualificationState& state) {
  if (!state.preflight_faults.empty()) return state.preflight_faults.front();
  std::size_t done = 0;
  for (const run::RunState& run : state.runs) {
    done += static_cast<std::size_t>(!run.attempts.empty() && run.attempts.back().ended);
  }
  return std::to_string(done) + " of " + std::to_string(state.runs.size()) + " runs ended";
}

bool has_live_job(const run::QualificationState& state) {
  return std::any_of(state.runs.begin(), state.runs.end(), [](const run::RunState& run) {
    return !run.attempts.empty() && !run.attempts.back().ended;
  });
}

/// One gate that runs, step by step; each step may change what the one before said.
class Running {
 public:
  Running(const policy::Gate& gate, bool declared, const Counted& counted, Time now)
      : gate_(gate), declared_(declared), counted_(counted), now_(now) {
    const auto found = counted.facts().gates.find(gate.name);
    if (found != counted.facts().gates.end()) facts_ = &found->second;
    to_.gate = gate.name;
    to_.kind = gate.kind;
    to_.policy = policy_digest(gate);
  }

  Standing standing() {
    if (facts_ != nullptr && facts_->finished) {
      judged();
      hear_people();
      hold();
    } else {
      to_.reasons.emplace_back("has not been run");
      to_.next = "qualify run " + gate_.name + " --bundle BUNDLE";
    }
    if (facts_ != nullptr) under_way();
    apply_waiver(counted_, now_, to_);
    return std::move(to_);
  }

 private:
  void judged() {
    const run::QualificationState& done = *facts_->finished;
    to_.status = status_of(*done.verdict);
    to_.reasons = done.reasons;
    if (!done.summary.empty() && (to_.reasons.empty() || to_.reasons.front() != done.summary)) {
      to_.reasons.insert(to_.reasons.begin(), done.summary);
    }
    if (to_.reasons.empty()) to_.reasons.emplace_back(name_of(to_.status));
    to_.qualification = done.name;
    to_.since = to_.judged = done.judged_at;
    speak_of(done.plan.bundle);
    switch (to_.status) {
      case Status::needs_decision:
        to_.next = "qualify decide " + gate_.name + " --accept --reason TEXT --key FILE";
        break;
      case Status::fail:
        to_.next =
            policy::changes_baseline(done.reasons)
                ? "qualify decide " + gate_.name + " --convergence FILE --reason TEXT --key FILE"
                : "qualify history " + gate_.name;
        break;
      case Status::pass:
        certified();
        break;
      default:
        to_.next = run_command(done, bundle_word(to_));
    }
  }

  void speak_of(const Digest& bundle) {
    to_.bundle = bundle;
    const auto* known = sealed(counted_.facts(), bundle);
    to_.bundle_name = known == nullptr ? std::string() : known->name;
  }

  /// A pass closes a gate by its certificate, not by the journal's word.
  void certified() {
    const run::QualificationState& done = *facts_->finished;
    if (done.certificate.empty()) {
      to_.status = Status::open;
      to_.reasons.insert(to_.reasons.begin(),
                         "passed, but without a certificate: the bundle was sealed from a dirty "
                         "tree, or is of a recipe class below the gate's");
      to_.next = run_command(done, "BUNDLE");
      return;
    }
    to_.certificate = done.certificate;
    const auto found = counted_.facts().certificates.find(done.certificate);
    const std::string what = "certificate " + brief(done.certificate);
    std::string wrong;
    if (found == counted_.facts().certificates.end()) {
      wrong = what + " is not in the ledger";
    } else if (!found->second.fault.empty()) {
      wrong = what + " is damaged: " + found->second.fault;
    } else if (found->second.gate != gate_.name || found->second.policy != done.plan.policy ||
               found->second.bundles.size() != 1 ||
               found->second.bundles.front().second != done.plan.bundle) {
      wrong = what + " and the journal disagree";
    } else {
      to_.since = found->second.time;
      to_.bundle_name = found->second.bundles.front().first;
    }
    if (wrong.empty()) return;
    to_.status = Status::blocked;
    to_.certificate.clear();
    to_.reasons.insert(to_.reasons.begin(), wrong);
    to_.next = "qualify verify";
  }

  /// People answer what numbers leave open, and nothing else.
  void hear_people() {
    const run::QualificationState& done = *facts_->finished;
    const bool open_to_people =
        to_.status == Status::needs_decision ||
        (to_.status == Status::fail && policy::changes_baseline(done.reasons));
    if (!open_to_people) return;
    auto decided = counted_.decided(*facts_);
    to_.reasons.insert(to_.reasons.end(), decided.word.notes.begin(), decided.word.notes.end());
    if (!decided.what) return;
    const bool convergence = *decided.what == Decision::What::convergence;
    if (convergence != (to_.status == Status::fail)) return;
    const std::string who = joined(decided.word.people) + " on " + time_text(decided.word.since);
    const bool accepted = *decided.what != Decision::What::reject;
    to_.status = accepted ? Status::pass : Status::fail;
    to_.reasons.insert(
        to_.reasons.begin(),
        convergence ? "by decision: convergence vouched for by " + who
                    : std::string(accepted ? "by decision: accepted by " : "rejected by ") + who);
    to_.records = std::move(decided.word.records);
    to_.since = decided.word.since;
    to_.next.clear();
  }

  /// Whether what was judged still holds.
  void hold() {
    const run::QualificationState& done = *facts_->finished;
    const auto stale = [&](std::string why) {
      if (to_.status != Status::stale) why += "; it was " + std::string(name_of(to_.status));
      to_.status = Status::stale;
      to_.reasons.insert(to_.reasons.begin(), std::move(why));
      to_.next = run_command(done, bundle_word(to_));
    };
    if (to_.status == Status::pass && gate_.max_age > Duration::zero()) {
      // From when it was judged: a decision makes no measurement younger.
      to_.until = *to_.judged + gate_.max_age;
      if (now_ >= *to_.until) {
        stale("older than " + age_text(gate_.max_age) + ": of " + time_text(*to_.judged));
      }
    }
    if (!to_.certificate.empty()) {
      if (const std::string why = counted_.why_not(to_.certificate); !why.empty()) stale(why);
    }
    std::string moved;
    if (facts_->later && facts_->later->open() && facts_->later->plan.bundle != done.plan.bundle) {
      moved = facts_->later->plan.bundle.brief() + ", by " + facts_->later->name;
    } else if (facts_->armed && facts_->armed->bundle != done.plan.bundle) {
      moved = facts_->armed->bundle.brief() + ", which it is armed with";
    } else if (const auto* next = successor(counted_.facts(), done.plan.bundle)) {
      moved = next->digest.brief() + ", sealed later";
    }
    if (!moved.empty()) {
      stale("the bundle moved on from " + done.plan.bundle.brief() + " to " + moved);
    }
    if (declared_ && done.plan.policy != to_.policy) {
      stale("the gate is another version: its policy was changed after " + done.name);
    }
    if (!declared_) to_.reasons.emplace_back("as it is on record: not declared any more");
  }

  /// What is going on now; it replaces what is not closed, and stands beside what is.
  void under_way() {
    const auto say = [&](Status status, std::string why, std::string next) {
      if (to_.status == Status::pass) {
        to_.reasons.push_back("again " + std::string(name_of(status)) + ": " + why);
        return;
      }
      if (!facts_->finished) to_.reasons.clear();
      to_.status = status;
      to_.reasons.insert(to_.reasons.begin(), std::move(why));
      to_.next = std::move(next);
    };
    if (facts_->later) {
      const run::QualificationState& later = *facts_->later;
      if (!to_.bundle || to_.status != Status::pass) speak_of(later.plan.bundle);
      if (!later.open()) {
        say(Status::open, "given up by " + later.cancelled, run_command(later, bundle_word(to_)));
      } else {
        const Status status = has_live_job(later)              ? Status::running
                              : later.preflight_faults.empty() ? Status::open
                                                               : Status::blocked;
        say(status, progress_of(later),
            status == Status::running ? "qualify status " + gate_.name + " --watch"
                                      : run_command(later, later.plan.bundle.brief()));
      }
    }
    if (facts_->armed && to_.status != Status::running) {
      if (!to_.bundle) speak_of(facts_->armed->bundle);
      say(Status::armed, describe(*facts_->armed), {});
    }
  }

  const policy::Gate& gate_;
  bool declared_;
  const Counted& counted_;
  Time now_;
  const GateFacts* facts_ = nullptr;
  Standing to_;
};

}  // namespace

Standing of_running(const policy::Gate& gate, bool declared, const Counted& counted, Time now) {
  return Running(gate, declared, counted, now).standing();
}

void apply_waiver(const Counted& counted, Time now, Standing& to) {
  if (to.status == Status::pass) return;
  auto waived = counted.waived(to.gate, to.policy, to.bundle, now);
  to.reasons.insert(to.reasons.end(), waived.word.notes.begin(), waived.word.notes.end());
  if (!waived.waiver) return;
  to.reasons.insert(to.reasons.begin(), "waived by " + joined(waived.word.people) + " until " +
                                            time_text(waived.waiver->until) + ": " +
                                            waived.waiver->reason + "; it is " +
                                            name_of(to.status));
  to.status = Status::waived;
  to.records = std::move(waived.word.records);
  to.since = waived.word.since;
  to.until = waived.waiver->until;
}

}  // namespace qualify::standing
