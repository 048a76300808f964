#include "equality.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace qualify::policy {

namespace {

constexpr const char* kFiledTwice = " are one run filed twice: their wall-clock marks are equal";

bool is_digest(evidence::Precision precision) {
  return precision == evidence::Precision::sha256 || precision == evidence::Precision::weak_digest;
}

/// First iteration at which a required metric is NaN or infinite; a run that went wrong that way is
/// a workload failure, however equal its twin is.
std::optional<std::string> not_finite(const Gate& gate, const RunEvidence& run) {
  for (const std::string& metric : gate.required_metrics) {
    const auto found = run.metrics.series.find(metric);
    if (found == run.metrics.series.end()) continue;
    for (const auto& [iteration, scalar] : found->second.values) {
      if (is_digest(scalar.precision)) continue;
      if (!std::isfinite(scalar.value())) {
        return "run " + run.run + ": " + metric + " is not finite at iteration " +
               std::to_string(iteration);
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> missing_step(const Gate& gate, const RunEvidence& run,
                                        std::int64_t first_step) {
  for (const std::string& metric : gate.required_metrics) {
    const auto found = run.metrics.series.find(metric);
    if (found == run.metrics.series.end()) {
      return "run " + run.run + " has no metric '" + metric + "'";
    }
    auto value = found->second.values.begin();
    const auto end = found->second.values.end();
    for (std::int64_t step = first_step; step <= gate.steps; ++step) {
      while (value != end && value->first < step) ++value;
      if (value == end || value->first != step) {
        return "run " + run.run + ": " + metric + " is missing at iteration " +
               std::to_string(step) + " of " + std::to_string(gate.steps);
      }
    }
  }
  return std::nullopt;
}

std::string describe_difference(const exactness::MetricComparison& metric) {
  return metric.metric + " first differs at iteration " + std::to_string(metric.first->iteration);
}

/// No value differs: is that equality at the level that the gate asks for? The required metrics
/// decide; any other that cannot prove it only limits what the verdict says.
void weigh_match(const Gate& gate, const exactness::Comparison& comparison,
                 const std::string& names, Findings& findings) {
  if (comparison.same_run_filed_twice) {
    findings.doubts.push_back(names + kFiledTwice);
    return;
  }
  std::set<std::string> required(gate.required_metrics.begin(), gate.required_metrics.end());
  for (const exactness::MetricComparison& metric : comparison.metrics) {
    const bool asked = required.erase(metric.metric) > 0;
    if (metric.outcome != exactness::Outcome::equal || !metric.level) {
      if (asked) {
        findings.doubts.push_back(names + ": " + metric.metric + ": " + metric.why);
      } else if (const std::string limit = metric.metric + " was not proven equal: " + metric.why;
                 std::find(findings.limits.begin(), findings.limits.end(), limit) ==
                 findings.limits.end()) {
        findings.limits.push_back(limit);
      }
    } else if (asked && *metric.level < gate.level) {
      findings.doubts.push_back(names + ": " + metric.metric + " matches at " +
                                exactness::name_of(*metric.level) + ", the gate asks for " +
                                exactness::name_of(gate.level));
    } else if (asked) {
      findings.level = findings.level ? std::min(*findings.level, *metric.level) : *metric.level;
    }
  }
  for (const std::string& missing : required) {
    findings.doubts.push_back(names + ": metric '" + missing + "' is not in both runs");
  }
}

/// Names that either run's arm sets by itself: between two arms, those may differ.
std::vector<std::string> declared_between(const RunEvidence& a, const RunEvidence& b) {
  if (a.arm == b.arm) return {};
  std::vector<std::string> names = a.arm_settings;
  names.insert(names.end(), b.arm_settings.begin(), b.arm_settings.end());
  return names;
}

}  // namespace

void weigh_run(const Gate& gate, const RunEvidence& run, std::int64_t first_step,
               Findings& findings) {
  if (!run.complete) {
    findings.doubts.push_back("run " + run.run + " did not complete: " + run.failure);
    return;
  }
  for (const evidence::ReadFault& fault : run.metrics.faults) {
    findings.doubts.push_back("run " + run.run + ": " + fault.message +
                              (fault.where.empty() ? "" : " (" + fault.where + ")"));
  }
  if (auto why = missing_step(gate, run, first_step)) findings.doubts.push_back(*why);
  if (auto why = not_finite(gate, run)) findings.doubts.push_back(*why);
}

void weigh_copies(const RunEvidence& a, const RunEvidence& b, Findings& findings) {
  if (evidence::shares_marks(a.metrics, b.metrics)) {
    findings.doubts.push_back(a.run + " and " + b.run + kFiledTwice);
  }
}

void weigh_values(const Gate& gate, const RunEvidence& a, const RunEvidence& b,
                  std::int64_t first_step, PairJudgement& pair, Findings& findings) {
  // Incomplete runs are compared too where they left metrics: a difference in what both recorded
  // is definitive, and only equality needs both to be whole.
  if (a.metrics.series.empty() || b.metrics.series.empty()) return;
  const std::string names = a.run + " and " + b.run;
  exactness::Options options;
  options.required_metrics = gate.required_metrics;
  if (first_step > 1) options.from_iteration = first_step;
  pair.comparison = exactness::compare(a.metrics, b.metrics, options);
  if (const auto* first = pair.comparison->first_divergence()) {
    findings.differences.push_back(names + ": " + describe_difference(*first));
  } else {
    weigh_match(gate, *pair.comparison, names, findings);
  }
}

PairJudgement pair_of(const RunEvidence& a, const RunEvidence& b) {
  PairJudgement pair{a.run, b.run, {}, {}};
  if (a.environment && b.environment) {
    pair.environment =
        exactness::compare_environments(*a.environment, *b.environment, declared_between(a, b));
  }
  return pair;
}

PairJudgement weigh_pair(const Gate& gate, const RunEvidence& a, const RunEvidence& b,
                         std::int64_t first_step, Findings& findings) {
  PairJudgement pair = pair_of(a, b);
  if (pair.environment) {
    if (const auto why = pair.environment->why_inconclusive(); !why.empty()) {
      findings.doubts.push_back(a.run + " and " + b.run + ": " + why);
    }
  }
  weigh_values(gate, a, b, first_step, pair, findings);
  return pair;
}

std::string CommonNodes::str() const {
  if (same()) return "the same nodes";
  if (disjoint()) return "disjoint nodes";
  return std::to_string(common) + " of " + std::to_string(all) + " nodes in common";
}

std::optional<CommonNodes> common_nodes(const RunEvidence& a, const RunEvidence& b) {
  if (a.nodes.empty() || b.nodes.empty()) return std::nullopt;
  std::vector<std::string> both;
  std::set_intersection(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(),
                        std::back_inserter(both));
  return CommonNodes{both.size(), std::max(a.nodes.size(), b.nodes.size())};
}

namespace {

/// How strong the equality is, in words that promise no more than the level does.
std::string manner_of(exactness::Level level) {
  const std::string name = exactness::name_of(level);
  switch (level) {
    case exactness::Level::e0:
      return " in structure (" + name + ")";
    case exactness::Level::e1:
    case exactness::Level::e4:
      return " bit for bit (" + name + ")";
    case exactness::Level::e2:
    case exactness::Level::e3:
      break;
  }
  return " by digests, a " + std::string(exactness::claim_of(level)) + " (" + name + ")";
}

}  // namespace

Judgement conclude(const std::string& what, Findings findings, std::vector<PairJudgement> pairs) {
  Judgement judgement;
  judgement.pairs = std::move(pairs);
  judgement.limits = std::move(findings.limits);
  if (!findings.differences.empty()) {
    judgement.verdict = Verdict::fail;
    judgement.reasons = std::move(findings.differences);
    judgement.reasons.insert(judgement.reasons.end(), findings.doubts.begin(),
                             findings.doubts.end());
    return judgement;
  }
  if (!findings.doubts.empty() || !findings.level) {
    judgement.verdict = Verdict::inconclusive;
    judgement.reasons = std::move(findings.doubts);
    if (judgement.reasons.empty()) judgement.reasons.emplace_back("no pair could be compared");
    return judgement;
  }
  judgement.verdict = Verdict::pass;
  judgement.level = findings.level;
  judgement.reasons.push_back(what + manner_of(*findings.level));
  if (*findings.level < exactness::Level::e4) {
    judgement.limits.push_back(std::string("equality at ") + exactness::name_of(*findings.level) +
                               ": the recorded metrics, not every tensor");
  }
  return judgement;
}

}  // namespace qualify::policy
