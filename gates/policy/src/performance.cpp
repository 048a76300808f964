#include "performance.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

namespace qualify::policy {

namespace {

using statistics::Fault;
using statistics::OverheadVerdict;

Verdict verdict_of(OverheadVerdict verdict) {
  switch (verdict) {
    case OverheadVerdict::pass:
      return Verdict::pass;
    case OverheadVerdict::fail:
      return Verdict::fail;
    case OverheadVerdict::needs_decision:
      return Verdict::needs_decision;
    case OverheadVerdict::inconclusive:
      return Verdict::inconclusive;
  }
  return Verdict::inconclusive;
}

/// "rank-time/12": what rank 12 logged of its own work in a step, or was logged for it.
statistics::RankTimes rank_times(const evidence::RunMetrics& metrics) {
  constexpr std::string_view prefix = "rank-time/";
  statistics::RankTimes times;
  for (auto it = metrics.series.lower_bound(std::string(prefix));
       it != metrics.series.end() && it->first.starts_with(prefix); ++it) {
    const std::string_view number = std::string_view(it->first).substr(prefix.size());
    std::uint32_t rank = 0;
    const auto end = number.data() + number.size();
    if (const auto read = std::from_chars(number.data(), end, rank);
        read.ec != std::errc{} || read.ptr != end) {
      continue;
    }
    for (const auto& [step, scalar] : it->second.values) times[rank][step] = scalar.value();
  }
  return times;
}

/// Half of the finest digit that any of the times was printed in: a format that leaves out zeros at
/// the end has them all in some. 0 where the bits themselves are there.
double resolution_of(const evidence::Series& series) {
  std::optional<int> finest;
  for (const auto& [step, scalar] : series.values) {
    if (scalar.precision == evidence::Precision::float32_bits ||
        scalar.precision == evidence::Precision::float64_bits) {
      return 0;
    }
    const int digit = scalar.precision == evidence::Precision::printed ? scalar.last_digit : 0;
    finest = std::min(finest.value_or(digit), digit);
  }
  return finest ? 0.5 * std::pow(10.0, *finest) : 0;
}

/// The step times of one run; a flaw of the reader in them is a fault, never silently passed over.
statistics::StepSeries steps_of(const Gate& gate, const RunEvidence& run,
                                std::vector<Fault>& faults) {
  statistics::StepSeries series;
  series.source = run.run;
  series.marks = run.metrics.wall_clock_marks;
  series.says_deterministic = run.says_deterministic;
  if (!run.complete) {
    faults.push_back({"incomplete-run", "run " + run.run + " did not complete: " + run.failure});
  }
  const auto found = run.metrics.series.find(gate.metric);
  if (found == run.metrics.series.end()) {
    faults.push_back({"missing-metric", "run " + run.run + " has no '" + gate.metric + "'"});
    return series;
  }
  for (const evidence::ReadFault& fault : run.metrics.faults) {
    if (!fault.metric.empty() && fault.metric != gate.metric) continue;
    // A step without a time is told by the windows, and only where the calendar keeps it.
    if (fault.metric == gate.metric && fault.iteration &&
        !found->second.values.contains(*fault.iteration)) {
      continue;
    }
    faults.push_back(
        {"damaged-metrics", "run " + run.run + ": " + fault.message +
                                (fault.where.empty() ? "" : " (" + fault.where + ")")});
  }
  for (const auto& [step, scalar] : found->second.values) {
    series.step.push_back(step);
    series.seconds.push_back(scalar.value());
  }
  series.resolution = resolution_of(found->second);
  series.ranks = rank_times(run.metrics);
  return series;
}

}  // namespace

statistics::OverheadRequest overhead_request(const Gate& gate, const std::vector<RunEvidence>& runs,
                                             std::vector<Fault>& faults) {
  statistics::OverheadRequest request;
  if (auto policy = statistics::decision_policy(gate.decision)) {
    request.policy = std::move(*policy);
  } else {
    faults.push_back({"unknown-policy", policy.error().message});
  }
  request.calendar = gate.exclude;
  request.looks = registered_looks(gate);
  request.placebo_required = gate.placebo_pairs > 0;

  std::map<std::uint32_t, std::vector<const RunEvidence*>> by_pair;
  for (const RunEvidence& run : runs) by_pair[run.pair].push_back(&run);
  for (const auto& [number, members] : by_pair) {
    if (members.size() != 2) {
      faults.push_back({"missing-run", "pair " + std::to_string(number) + " has " +
                                           std::to_string(members.size()) + " of 2 runs"});
      continue;
    }
    const RunEvidence& first = *members[0];
    const RunEvidence& second = *members[1];
    statistics::LaunchPair pair;
    const bool placebo = first.arm == second.arm;
    const bool swap = !placebo && second.arm == gate.deterministic_arm;
    pair.name = (placebo ? "placebo pair " : "pair ") + std::to_string(number);
    pair.order = swap ? statistics::Order::ba : statistics::Order::ab;
    pair.deterministic = steps_of(gate, swap ? second : first, faults);
    pair.nondeterministic = steps_of(gate, swap ? first : second, faults);
    (placebo ? request.placebo : request.pairs).push_back(std::move(pair));
  }
  if (!request.placebo.empty() && request.placebo.size() < gate.placebo_pairs) {
    faults.push_back({"no-placebo", std::to_string(request.placebo.size()) + " of " +
                                        std::to_string(gate.placebo_pairs) +
                                        " placebo pairs are there"});
  }
  return request;
}

Judgement judge_performance(const Gate& gate, const std::vector<RunEvidence>& runs) {
  std::vector<Fault> faults;
  const auto request = overhead_request(gate, runs, faults);
  Judgement judgement = judge_overhead(request, std::move(faults));
  std::vector<RunClocks> clocks;
  for (const RunEvidence& run : runs) clocks.push_back({run.run, run.gpus});
  judgement.overhead->clocks = clocks_summary(clocks);
  for (std::string& limit : clock_limits(clocks)) {
    judgement.overhead->limits.push_back(limit);
    judgement.limits.push_back(std::move(limit));
  }
  return judgement;
}

Judgement judge_overhead(const statistics::OverheadRequest& request, std::vector<Fault> faults) {
  Judgement judgement;
  auto analysis = statistics::analyse(request);
  if (!faults.empty()) {
    // What keeps a run out is the cause of whatever the analysis then misses: it goes first.
    analysis.verdict = OverheadVerdict::inconclusive;
    std::vector<std::string> reasons;
    for (const Fault& fault : faults) reasons.push_back(fault.code + ": " + fault.message);
    for (std::string& reason : analysis.reasons) reasons.push_back(std::move(reason));
    analysis.reasons = std::move(reasons);
    faults.insert(faults.end(), analysis.faults.begin(), analysis.faults.end());
    analysis.faults = std::move(faults);
    for (auto& goal : analysis.goals) goal.met.reset();
  }
  judgement.verdict = verdict_of(analysis.verdict);
  judgement.reasons = analysis.reasons;
  judgement.limits = analysis.limits;
  for (std::size_t i = 0; i < analysis.pairs.size(); ++i) {
    const auto& result = analysis.pairs[i];
    judgement.pairs.push_back(
        {request.pairs[i].deterministic.source, request.pairs[i].nondeterministic.source,
         std::nullopt,
         result.log_ratio ? std::optional(std::exp(*result.log_ratio)) : std::nullopt});
  }
  judgement.overhead = std::move(analysis);
  return judgement;
}

}  // namespace qualify::policy
