#include <algorithm>

#include "equality.hpp"

namespace qualify::policy {

namespace {

constexpr const char* kChangesBaseline = "changes baseline ";

/// The candidate is another bundle, and may well run on another driver: that limits no equality of
/// values, which holds in spite of it, and is named where they differ.
std::string surroundings(const PairJudgement& pair) {
  if (!pair.environment) return {};
  std::string names;
  std::size_t more = 0;
  for (const auto& difference : pair.environment->differences) {
    if (difference.kind == exactness::DifferenceClass::identity) continue;
    if (std::count(names.begin(), names.end(), ',') < 2) {
      names += (names.empty() ? "" : ", ") + difference.name;
    } else {
      ++more;
    }
  }
  return more == 0 ? names : names + " and " + std::to_string(more) + " more";
}

}  // namespace

bool changes_baseline(const std::vector<std::string>& reasons) {
  return !reasons.empty() && reasons.front().starts_with(kChangesBaseline);
}

Judgement judge_baseline(const Gate& gate, const std::vector<RunEvidence>& runs,
                         const RunEvidence* baseline) {
  const std::string name = "baseline '" + gate.baseline + "'";
  Findings findings;
  std::vector<PairJudgement> pairs = weigh_repeats(gate, runs, findings);
  const bool repeatable =
      runs.size() > 1 && findings.differences.empty() && findings.doubts.empty();

  Findings against;
  std::string other;  // surroundings
  if (baseline == nullptr) {
    against.doubts.push_back("the evidence of " + name + " is not there");
  } else if (!runs.empty()) {
    RunEvidence established = *baseline;
    established.run = kBaselineRun;
    weigh_run(gate, established, 1, against);
    PairJudgement pair = pair_of(established, runs[0]);
    weigh_values(gate, established, runs[0], 1, pair, against);
    for (std::size_t i = 1; i < runs.size(); ++i) weigh_copies(established, runs[i], against);
    other = surroundings(pair);
    pairs.push_back(std::move(pair));
  }

  const bool changed = !against.differences.empty();
  if (changed) {
    const std::string what = name + ": " + against.differences.front();
    if (repeatable) {
      findings.differences.push_back("changes " + what);
      findings.differences.push_back("repeatable: the " + std::to_string(runs.size()) +
                                     " runs are equal among themselves");
    } else {
      findings.differences.push_back("differs from " + what);
      if (runs.size() == 1) {
        findings.differences.emplace_back("one run does not tell whether it is repeatable");
      }
    }
    if (!other.empty()) findings.differences.push_back("other than at the baseline: " + other);
  }
  findings.doubts.insert(findings.doubts.end(), against.doubts.begin(), against.doubts.end());
  for (std::string& limit : against.limits) {
    if (std::find(findings.limits.begin(), findings.limits.end(), limit) == findings.limits.end()) {
      findings.limits.push_back(std::move(limit));
    }
  }
  // Equality with the baseline is what passes: without its level there is none.
  if (!findings.level || !against.level || *against.level < *findings.level) {
    findings.level = against.level;
  }
  Judgement judgement =
      conclude(std::to_string(runs.size()) + (runs.size() == 1 ? " run" : " runs") + " of arm '" +
                   gate.arm + "' " + (runs.size() == 1 ? "equals " : "equal ") + name,
               std::move(findings), std::move(pairs));
  limit_by_places(runs, judgement);
  if (judgement.verdict == Verdict::pass && !other.empty()) {
    judgement.limits.push_back("other than at the baseline, without a difference in values: " +
                               other);
  }
  return judgement;
}

}  // namespace qualify::policy
