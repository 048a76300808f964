#include <set>

#include "equality.hpp"

namespace qualify::policy {

namespace {

/// What the gate asks of the runs' places, against where they were.
void weigh_places(const Gate& gate, const std::vector<RunEvidence>& runs, Findings& findings) {
  std::set<std::string> allocations;
  for (const RunEvidence& run : runs) {
    if (run.complete) allocations.insert(run.allocation);
  }
  if (gate.allocation == Allocation::separate && allocations.size() < runs.size() &&
      findings.doubts.empty()) {
    findings.doubts.emplace_back("two runs shared an allocation, the gate asks for separate ones");
  }
  if (gate.nodes == NodeChoice::any) return;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const auto nodes = common_nodes(runs[0], runs[i]);
    if (!nodes) {
      findings.doubts.push_back(
          "where " + runs[0].run + " and " + runs[i].run + " ran is not known, the gate asks for " +
          (gate.nodes == NodeChoice::same ? "the same nodes" : "disjoint ones"));
      continue;
    }
    const bool same = gate.nodes == NodeChoice::same;
    if (same ? nodes->same() : nodes->disjoint()) continue;
    findings.doubts.push_back(runs[0].run + " and " + runs[i].run + " had " + nodes->str() +
                              ", the gate asks for " + (same ? "the same" : "disjoint ones"));
  }
}

}  // namespace

std::vector<PairJudgement> weigh_repeats(const Gate& gate, const std::vector<RunEvidence>& runs,
                                         Findings& findings) {
  for (const RunEvidence& run : runs) weigh_run(gate, run, 1, findings);
  if (runs.size() < gate.runs) {
    findings.doubts.push_back(std::to_string(runs.size()) + " of " + std::to_string(gate.runs) +
                              " runs are there");
  }
  weigh_places(gate, runs, findings);
  std::vector<PairJudgement> pairs;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    pairs.push_back(weigh_pair(gate, runs[0], runs[i], 1, findings));
    // Those that are not compared must be runs of their own too.
    for (std::size_t j = 1; j < i; ++j) weigh_copies(runs[j], runs[i], findings);
  }
  return pairs;
}

void limit_by_places(const std::vector<RunEvidence>& runs, Judgement& judgement) {
  if (judgement.verdict != Verdict::pass) return;
  std::set<std::string> allocations;
  std::set<std::string> places;
  for (const RunEvidence& run : runs) {
    allocations.insert(run.allocation);
    const auto nodes = &run == &runs[0] ? std::nullopt : common_nodes(runs[0], run);
    if (nodes && !nodes->disjoint()) places.insert(nodes->str());
  }
  if (allocations.size() < runs.size()) {
    judgement.limits.emplace_back("same allocation: weaker than separate ones");
  }
  for (const std::string& place : places) {
    judgement.limits.push_back("on " + place + ": says nothing of others");
  }
}

Judgement judge_repeatability(const Gate& gate, const std::vector<RunEvidence>& runs) {
  Findings findings;
  std::vector<PairJudgement> pairs = weigh_repeats(gate, runs, findings);
  Judgement judgement =
      conclude(std::to_string(runs.size()) + " runs of arm '" + gate.arm + "' are equal",
               std::move(findings), std::move(pairs));
  limit_by_places(runs, judgement);
  return judgement;
}

}  // namespace qualify::policy
