#include "qualify/policy/judge.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "performance.hpp"

namespace qualify::policy {

namespace {

constexpr std::array kVerdicts = {"pass", "fail", "inconclusive", "needs-decision", "blocked"};

/// First iteration at which a required metric is NaN or infinite; a run that went wrong that way is
/// a workload failure, however equal its twin is.
std::optional<std::string> not_finite(const Gate& gate, const RunEvidence& run) {
  for (const std::string& metric : gate.required_metrics) {
    const auto found = run.metrics.series.find(metric);
    if (found == run.metrics.series.end()) continue;
    for (const auto& [iteration, scalar] : found->second.values) {
      if (!std::isfinite(scalar.value())) {
        return "run " + run.run + ": " + metric + " is not finite at iteration " +
               std::to_string(iteration);
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> missing_step(const Gate& gate, const RunEvidence& run) {
  for (const std::string& metric : gate.required_metrics) {
    const auto found = run.metrics.series.find(metric);
    if (found == run.metrics.series.end()) {
      return "run " + run.run + " has no metric '" + metric + "'";
    }
    auto value = found->second.values.begin();
    const auto end = found->second.values.end();
    for (std::int64_t step = 1; step <= gate.steps; ++step) {
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
                 const std::string& names, std::optional<exactness::Level>& level,
                 std::vector<std::string>& doubts, std::vector<std::string>& limits) {
  if (comparison.same_run_filed_twice) {
    doubts.push_back(names + " are one run filed twice: their wall-clock marks are equal");
    return;
  }
  std::set<std::string> required(gate.required_metrics.begin(), gate.required_metrics.end());
  for (const exactness::MetricComparison& metric : comparison.metrics) {
    const bool asked = required.erase(metric.metric) > 0;
    if (metric.outcome != exactness::Outcome::equal || !metric.level) {
      if (asked) {
        doubts.push_back(names + ": " + metric.metric + ": " + metric.why);
      } else if (const std::string limit = metric.metric + " was not proven equal: " + metric.why;
                 std::find(limits.begin(), limits.end(), limit) == limits.end()) {
        limits.push_back(limit);
      }
    } else if (asked && *metric.level < gate.level) {
      doubts.push_back(names + ": " + metric.metric + " matches at " +
                       exactness::name_of(*metric.level) + ", the gate asks for " +
                       exactness::name_of(gate.level));
    } else if (asked) {
      level = level ? std::min(*level, *metric.level) : *metric.level;
    }
  }
  for (const std::string& missing : required) {
    doubts.push_back(names + ": metric '" + missing + "' is not in both runs");
  }
}

Judgement judge_repeatability(const Gate& gate, const std::vector<RunEvidence>& runs) {
  Judgement judgement;
  std::vector<std::string> differences;
  std::vector<std::string> doubts;

  std::set<std::string> allocations;
  for (const RunEvidence& run : runs) {
    if (!run.complete) {
      doubts.push_back("run " + run.run + " did not complete: " + run.failure);
      continue;
    }
    allocations.insert(run.allocation);
    for (const evidence::ReadFault& fault : run.metrics.faults) {
      doubts.push_back("run " + run.run + ": " + fault.message +
                       (fault.where.empty() ? "" : " (" + fault.where + ")"));
    }
    if (auto why = missing_step(gate, run)) doubts.push_back(*why);
    if (auto why = not_finite(gate, run)) doubts.push_back(*why);
  }
  if (runs.size() < gate.runs) {
    doubts.push_back(std::to_string(runs.size()) + " of " + std::to_string(gate.runs) +
                     " runs are there");
  }
  if (gate.allocation == Allocation::separate && allocations.size() < runs.size() &&
      doubts.empty()) {
    doubts.push_back("two runs shared an allocation, the gate asks for separate ones");
  }

  exactness::Options options;
  options.required_metrics = gate.required_metrics;
  std::optional<exactness::Level> level;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    PairJudgement pair{runs[0].run, runs[i].run, {}, {}};
    const std::string names = runs[0].run + " and " + runs[i].run;
    if (runs[0].environment && runs[i].environment) {
      pair.environment =
          exactness::compare_environments(*runs[0].environment, *runs[i].environment);
      if (const auto why = pair.environment->why_inconclusive(); !why.empty()) {
        doubts.push_back(names + ": " + why);
      }
    }
    // Incomplete runs are compared too where they left metrics: a difference in what both recorded
    // is definitive, and only equality needs both to be whole.
    if (!runs[0].metrics.series.empty() && !runs[i].metrics.series.empty()) {
      pair.comparison = exactness::compare(runs[0].metrics, runs[i].metrics, options);
      if (const auto* first = pair.comparison->first_divergence()) {
        differences.push_back(names + ": " + describe_difference(*first));
      } else {
        weigh_match(gate, *pair.comparison, names, level, doubts, judgement.limits);
      }
    }
    judgement.pairs.push_back(std::move(pair));
  }

  if (!differences.empty()) {
    judgement.verdict = Verdict::fail;
    judgement.reasons = std::move(differences);
    judgement.reasons.insert(judgement.reasons.end(), doubts.begin(), doubts.end());
    return judgement;
  }
  if (!doubts.empty() || !level) {
    judgement.verdict = Verdict::inconclusive;
    judgement.reasons = std::move(doubts);
    if (judgement.reasons.empty()) judgement.reasons.emplace_back("no pair could be compared");
    return judgement;
  }
  judgement.verdict = Verdict::pass;
  judgement.level = level;
  judgement.reasons.push_back(std::to_string(runs.size()) + " runs of arm '" + gate.arm +
                              "' are equal bit for bit (" + exactness::name_of(*level) + ")");
  if (*level < exactness::Level::e4) {
    judgement.limits.push_back(std::string("equality at ") + exactness::name_of(*level) +
                               ": the recorded metrics, not every tensor");
  }
  if (allocations.size() < runs.size()) {
    judgement.limits.emplace_back("same allocation: weaker than separate ones");
  }
  return judgement;
}

}  // namespace

const char* name_of(Verdict verdict) {
  return kVerdicts[static_cast<std::size_t>(verdict)];
}

Result<Verdict> parse_verdict(const std::string& text) {
  for (std::size_t i = 0; i < kVerdicts.size(); ++i) {
    if (text == kVerdicts[i]) return static_cast<Verdict>(i);
  }
  return fail(Errc::invalid_input, "not a verdict: '" + text + "'");
}

Exit exit_for(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return Exit::ok;
    case Verdict::fail:
      return Exit::differs;
    case Verdict::inconclusive:
    case Verdict::needs_decision:
    case Verdict::blocked:
      return Exit::undecided;
  }
  return Exit::undecided;
}

Judgement judge(const Gate& gate, const std::vector<RunEvidence>& runs) {
  switch (gate.kind) {
    case GateKind::repeatability:
      return judge_repeatability(gate, runs);
    case GateKind::performance:
      return judge_performance(gate, runs);
  }
  return {};
}

bool wants_more(const Judgement& judgement) {
  return judgement.verdict == Verdict::inconclusive && judgement.overhead &&
         judgement.overhead->faults.empty() && judgement.overhead->next_look;
}

Json to_json(const Judgement& judgement) {
  Json json = {{"schema_version", 1},
               {"verdict", name_of(judgement.verdict)},
               {"reasons", judgement.reasons},
               {"limits", judgement.limits},
               {"level", nullptr},
               {"overhead", nullptr},
               {"pairs", Json::array()}};
  if (judgement.level) json["level"] = exactness::name_of(*judgement.level);
  if (judgement.overhead) json["overhead"] = statistics::to_json(*judgement.overhead);
  for (const PairJudgement& pair : judgement.pairs) {
    json["pairs"].push_back(
        {{"run_a", pair.run_a},
         {"run_b", pair.run_b},
         {"comparison", pair.comparison ? exactness::to_json(*pair.comparison) : Json(nullptr)},
         {"environment", pair.environment ? exactness::to_json(*pair.environment) : Json(nullptr)},
         {"step_time_ratio", pair.step_time_ratio ? Json(*pair.step_time_ratio) : Json(nullptr)}});
  }
  return json;
}

}  // namespace qualify::policy
