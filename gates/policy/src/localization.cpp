#include "localization.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "equality.hpp"
#include "performance.hpp"
#include "qualify/traces/manifest.hpp"

namespace qualify::policy {

namespace {

using traces::Outcome;

const RunEvidence* first_of(const std::vector<RunEvidence>& runs, const std::string& arm) {
  const auto found = std::find_if(runs.begin(), runs.end(),
                                  [&](const RunEvidence& run) { return run.arm == arm; });
  return found == runs.end() ? nullptr : &*found;
}

std::string run_name(const RunEvidence& run) {
  return "run " + run.run;
}

/// Traces that can be held against others: there, readable, complete. False: they can't, and why is
/// among the doubts.
bool weigh_traces(const RunEvidence& run, std::vector<std::string>& doubts) {
  if (!run.traces) {
    doubts.push_back(run_name(run) + " left no traces");
  } else if (!run.traces->unreadable.empty()) {
    doubts.push_back(run_name(run) + ": its traces cannot be read: " + run.traces->unreadable);
  } else if (!run.traces->faults.empty()) {
    const auto& faults = run.traces->faults;
    doubts.push_back(
        run_name(run) + ": its traces are incomplete: " + faults.front().message +
        (faults.size() > 1 ? " and " + std::to_string(faults.size() - 1) + " more faults" : ""));
  } else {
    return true;
  }
  return false;
}

/// Every rank that the gate names, and every iteration up to its steps.
bool weigh_coverage(const Gate& gate, const RunEvidence& run, std::vector<std::string>& doubts) {
  if (!weigh_traces(run, doubts)) return false;
  std::vector<std::int64_t> all(gate.localization.ranks);
  std::iota(all.begin(), all.end(), 0);
  if (run.traces->ranks != all) {
    doubts.push_back(run_name(run) + " has traces of ranks " +
                     traces::ranks_text(run.traces->ranks) + ", the gate asks for " +
                     traces::ranks_text(all));
    return false;
  }
  for (std::int64_t step = 1; step <= gate.steps; ++step) {
    if (std::binary_search(run.traces->iterations.begin(), run.traces->iterations.end(), step))
      continue;
    doubts.push_back(run_name(run) + ": its traces have no iteration " + std::to_string(step) +
                     " of " + std::to_string(gate.steps));
    return false;
  }
  return true;
}

/// Where it parts from the reference; null with the reason among the doubts where that is not
/// known.
const traces::Localization* found_in(const RunEvidence& run, std::vector<std::string>& doubts) {
  if (!run.traces->found) {
    doubts.push_back(run_name(run) + ": its traces were not compared" +
                     (run.traces->not_compared.empty() ? "" : ": " + run.traces->not_compared));
    return nullptr;
  }
  const traces::Localization& found = *run.traces->found;
  if (found.outcome == Outcome::inconclusive) {
    doubts.push_back(run_name(run) + " and " + run.traces->against + ": " +
                     (found.reasons.empty() ? "their traces say nothing" : found.reasons.front()));
    return nullptr;
  }
  if (found.outcome == Outcome::differs && found.frontier.empty()) {
    doubts.push_back(run_name(run) + " and " + run.traces->against +
                     " part, and no event is known to be first");
    return nullptr;
  }
  return &found;
}

void weigh_control(const RunEvidence& run, Findings& findings) {
  const auto* found = found_in(run, findings.doubts);
  if (found == nullptr || found->outcome == Outcome::equal) return;
  findings.differences.push_back(run.traces->against + " and " + run.run +
                                 ", of one arm, part: " + describe(found->frontier.front()));
}

/// Empty where the plant was found where it was planted, and nothing else was.
std::string mismatch(const Plant& plant, const traces::Localization& found) {
  if (found.outcome == Outcome::equal) return "was not found: the traces are equal";
  const traces::FrontierEvent& first = found.frontier.front();
  std::string wrong;
  const auto hold = [&](const char* what, const std::string& is, const std::string& declared) {
    if (is == declared) return;
    wrong += (wrong.empty() ? "" : ", ") + std::string(what) + " " + is + ", not " + declared;
  };
  hold("iteration", std::to_string(first.place.iteration), std::to_string(plant.iteration));
  hold("phase", first.place.phase, plant.phase);
  hold("site", first.place.site, plant.site);
  hold("ranks", traces::ranks_text(first.ranks), traces::ranks_text(plant.ranks));
  hold("class", name_of(first.cause), plant.classification);
  if (!wrong.empty()) return "was found elsewhere or as something else: " + wrong;
  if (found.frontier.size() > 1) {
    return "was found, and beside it what nobody planted: " + describe(found.frontier[1]);
  }
  return {};
}

void weigh_plant(const Gate& gate, const Plant& plant, const RunEvidence* run, Findings& findings) {
  if (run == nullptr) {
    findings.doubts.push_back("there is no run of arm '" + plant.arm + "'");
    return;
  }
  if (!run->complete) {
    findings.doubts.push_back("run " + run->run + " did not complete: " + run->failure);
    return;
  }
  if (!weigh_coverage(gate, *run, findings.doubts)) return;
  const auto* found = found_in(*run, findings.doubts);
  if (found == nullptr) return;
  if (const std::string wrong = mismatch(plant, *found); !wrong.empty()) {
    findings.differences.push_back("what arm '" + plant.arm + "' plants " + wrong);
  }
}

/// The pairs of a traced and an untraced launch through the decision code of performance gates,
/// with the bound that this gate declares.
Judgement judge_cost(const Gate& gate, const std::vector<RunEvidence>& runs) {
  std::vector<RunEvidence> timed;
  for (const RunEvidence& run : runs) {
    if (run.pair == 0) continue;
    timed.push_back(run);
    // Both arms are of one mode; only the arms of a performance gate are told by it.
    timed.back().says_deterministic.reset();
    timed.back().traces.reset();
  }
  Gate as_pairs = gate;
  as_pairs.deterministic_arm = gate.localization.traced_arm;
  as_pairs.nondeterministic_arm = gate.localization.untraced_arm;
  std::vector<statistics::Fault> faults;
  auto request = overhead_request(as_pairs, timed, faults);
  const double below = gate.localization.overhead_below;
  request.policy = {"tracing-overhead", below, below, false, {}};
  return judge_overhead(request, std::move(faults));
}

std::string cost_text(const Judgement& cost) {
  const auto& analysis = *cost.overhead;
  std::string text = "tracing costs ";
  if (!analysis.estimate) return text + "what could not be measured";
  text += statistics::overhead_text(analysis.estimate->value);
  if (analysis.bounds) {
    text += " [" + statistics::overhead_text(analysis.bounds->low) + ", " +
            statistics::overhead_text(analysis.bounds->high) + "]";
  }
  return text;
}

/// What was found of values and places, and what tracing costs: the worse of the two.
void add_cost(Judgement cost, Judgement& judgement) {
  const std::string text = cost_text(cost);
  if (cost.verdict == Verdict::pass) {
    judgement.reasons.push_back(text);
  } else {
    const std::string why = text + ": " + cost.reasons.front();
    if (judgement.verdict == Verdict::pass) {
      judgement.verdict = cost.verdict;
      judgement.level.reset();
      judgement.reasons.insert(judgement.reasons.begin(), why);
    } else {
      if (cost.verdict == Verdict::fail) judgement.verdict = Verdict::fail;
      judgement.reasons.push_back(why);
    }
    for (std::size_t i = 1; i < cost.reasons.size(); ++i) {
      judgement.reasons.push_back(cost.reasons[i]);
    }
  }
  judgement.limits.insert(judgement.limits.end(), cost.limits.begin(), cost.limits.end());
  for (const PairJudgement& timed : cost.pairs) {
    for (PairJudgement& pair : judgement.pairs) {
      if (pair.run_a != timed.run_a && pair.run_b != timed.run_b) continue;
      if (pair.run_a == timed.run_b || pair.run_b == timed.run_b) {
        pair.step_time_ratio = timed.step_time_ratio;
      }
    }
  }
  judgement.overhead = std::move(cost.overhead);
}

std::vector<TraceJudgement> trace_judgements(const std::vector<RunEvidence>& runs) {
  std::vector<TraceJudgement> all;
  for (const RunEvidence& run : runs) {
    if (run.traces && run.traces->found) {
      all.push_back({run.traces->against, run.run, *run.traces->found});
    }
  }
  return all;
}

Judgement judge_capture(const std::vector<RunEvidence>& runs) {
  Judgement judgement;
  judgement.traces = trace_judgements(runs);
  std::vector<std::string> doubts;
  for (const RunEvidence& run : runs) {
    if (!run.complete) {
      doubts.push_back("run " + run.run + " did not complete: " + run.failure);
    } else {
      (void)weigh_traces(run, doubts);
    }
  }
  if (runs.size() != 2) doubts.push_back(std::to_string(runs.size()) + " of 2 runs are there");
  const auto* found = doubts.empty() && runs[1].traces ? found_in(runs[1], doubts) : nullptr;
  if (found == nullptr) {
    judgement.reasons = std::move(doubts);
    return judgement;
  }
  if (found->outcome == Outcome::equal) {
    judgement.reasons = {"the runs are equal this time: what parted them did not come back"};
    return judgement;
  }
  judgement.verdict = Verdict::fail;
  const traces::FrontierEvent& first = found->frontier.front();
  judgement.reasons = {"first divergence: " + describe(first), first.why};
  judgement.reasons.push_back(
      first.one_event ? "interval of doubt: this one event"
                      : "last equal boundary: " + (first.last_equal ? describe(*first.last_equal)
                                                                    : "the iteration's beginning"));
  return judgement;
}

}  // namespace

Judgement judge_localization(const Gate& gate, const std::vector<RunEvidence>& runs) {
  const LocalizationCriteria& own = gate.localization;
  if (own.capture) return judge_capture(runs);
  Findings findings;
  std::vector<PairJudgement> pairs;
  const RunEvidence* reference = first_of(runs, own.traced_arm);
  if (reference == nullptr) {
    findings.doubts.push_back("there is no run of arm '" + own.traced_arm + "'");
  }
  std::size_t traced = 0;
  std::size_t untraced = 0;
  for (const RunEvidence& run : runs) {
    const bool with = run.arm == own.traced_arm;
    if (!with && run.arm != own.untraced_arm) continue;
    ++(with ? traced : untraced);
    weigh_run(gate, run, 1, findings);
    if (!with && run.traces) {
      findings.doubts.push_back(run_name(run) +
                                " left traces: it says nothing of what tracing changes or costs");
    }
    if (with && run.complete && weigh_coverage(gate, run, findings.doubts) && &run != reference) {
      weigh_control(run, findings);
    }
    if (reference != nullptr && &run != reference) {
      pairs.push_back(weigh_pair(gate, *reference, run, 1, findings));
    }
  }
  if (traced < 2) findings.doubts.emplace_back("no two traced runs are there to be equal");
  if (untraced == 0) findings.doubts.emplace_back("no untraced run is there");
  for (const Plant& plant : own.planted) {
    weigh_plant(gate, plant, first_of(runs, plant.arm), findings);
  }
  if (reference != nullptr && reference->traces && reference->traces->capture_level != "L2") {
    const std::string& level = reference->traces->capture_level;
    findings.limits.push_back("traces " + (level.empty() ? "of no stated level" : "at " + level) +
                              ": what they record in part may differ unseen");
  }
  Judgement judgement = conclude(
      std::to_string(own.planted.size()) + " of " + std::to_string(own.planted.size()) +
          " planted divergences were found where they were planted; " + std::to_string(traced) +
          " traced runs of " + std::to_string(own.ranks) +
          " ranks are equal event for event, and with and without traces the metrics are equal",
      std::move(findings), std::move(pairs));
  const bool open = judgement.verdict != Verdict::pass;
  add_cost(judge_cost(gate, runs), judgement);
  // No further pairs cure what is wrong with traces.
  if (open) judgement.overhead->next_look.reset();
  judgement.traces = trace_judgements(runs);
  return judgement;
}

}  // namespace qualify::policy
