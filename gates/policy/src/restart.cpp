#include <algorithm>
#include <array>

#include "equality.hpp"

namespace qualify::policy {

namespace {

const RunEvidence* of_arm(const std::vector<RunEvidence>& runs, const std::string& arm) {
  const auto found = std::find_if(runs.begin(), runs.end(),
                                  [&](const RunEvidence& run) { return run.arm == arm; });
  return found == runs.end() ? nullptr : &*found;
}

/// A "resumed" run that has the steps before its checkpoint began from the beginning, and its
/// equality says nothing of the checkpoint.
void must_have_resumed(const Gate& gate, const RunEvidence& run, Findings& findings) {
  for (const auto& [metric, series] : run.metrics.series) {
    if (series.values.empty() || series.values.begin()->first > gate.from_iteration) continue;
    findings.doubts.push_back("run " + run.run + " has iteration " +
                              std::to_string(series.values.begin()->first) + " of " + metric +
                              ": it did not start from the checkpoint of iteration " +
                              std::to_string(gate.from_iteration));
    return;
  }
}

}  // namespace

Judgement judge_restart(const Gate& gate, const std::vector<RunEvidence>& runs) {
  Findings findings;
  const RunEvidence* whole = of_arm(runs, gate.arm);
  const RunEvidence* resumed = of_arm(runs, gate.resumed_arm);
  const RunEvidence* broken = of_arm(runs, gate.broken_arm);
  const std::int64_t first = gate.from_iteration + 1;
  for (const auto& [run, arm] :
       {std::pair{whole, &gate.arm}, {resumed, &gate.resumed_arm}, {broken, &gate.broken_arm}}) {
    if (run == nullptr) {
      findings.doubts.push_back("there is no run of arm '" + *arm + "'");
    } else if (run != broken) {
      weigh_run(gate, *run, run == whole ? 1 : first, findings);
    }
  }
  std::vector<PairJudgement> pairs;
  if (whole != nullptr && resumed != nullptr) {
    if (resumed->complete) must_have_resumed(gate, *resumed, findings);
    pairs.push_back(weigh_pair(gate, *whole, *resumed, first, findings));
  }
  if (whole != nullptr && broken != nullptr) {
    // The other way round: only a difference is what was wanted, and shows that this comparison can
    // see a wrong resume at all.
    Findings control;
    weigh_run(gate, *broken, first, control);
    if (broken->complete) must_have_resumed(gate, *broken, control);
    pairs.push_back(weigh_pair(gate, *whole, *broken, first, control));
    if (control.differences.empty()) {
      findings.doubts.push_back(
          "the resume that is broken on purpose was not found to differ, so this comparison could "
          "not have seen a wrong one" +
          (control.doubts.empty() ? std::string() : ": " + control.doubts.front()));
    } else {
      // A run that crashed or began afresh differs too, and is no wrong resume that was seen.
      findings.doubts.insert(findings.doubts.end(), control.doubts.begin(), control.doubts.end());
    }
  }
  return conclude("the resumed run equals the uninterrupted one from iteration " +
                      std::to_string(first) + " on, and the broken one does not,",
                  std::move(findings), std::move(pairs));
}

}  // namespace qualify::policy
