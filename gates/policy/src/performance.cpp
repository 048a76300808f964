#include "performance.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace qualify::policy {

namespace {

struct Pair {
  const RunEvidence* deterministic = nullptr;
  const RunEvidence* nondeterministic = nullptr;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Steps after the warm-up that both runs have: the same index mask in both arms.
std::optional<double> step_time_ratio(const Gate& gate, const Pair& pair) {
  const auto a = pair.deterministic->metrics.series.find(gate.metric);
  const auto b = pair.nondeterministic->metrics.series.find(gate.metric);
  if (a == pair.deterministic->metrics.series.end() ||
      b == pair.nondeterministic->metrics.series.end()) {
    return std::nullopt;
  }
  std::vector<double> times_a;
  std::vector<double> times_b;
  for (const auto& [step, scalar] : a->second.values) {
    const auto other = b->second.values.find(step);
    if (step <= gate.warmup_steps || other == b->second.values.end()) continue;
    times_a.push_back(scalar.value());
    times_b.push_back(other->second.value());
  }
  if (times_a.empty()) return std::nullopt;
  const double ratio = median(std::move(times_a)) / median(std::move(times_b));
  if (!std::isfinite(ratio) || ratio <= 0) return std::nullopt;
  return ratio;
}

}  // namespace

Judgement judge_performance(const Gate& gate, const std::vector<RunEvidence>& runs) {
  Judgement judgement;
  std::map<std::uint32_t, Pair> pairs;
  for (const RunEvidence& run : runs) {
    if (!run.complete) {
      judgement.reasons.push_back("run " + run.run + " did not complete: " + run.failure);
    }
    Pair& pair = pairs[run.pair];
    (run.arm == gate.deterministic_arm ? pair.deterministic : pair.nondeterministic) = &run;
  }
  for (const auto& [number, pair] : pairs) {
    if (pair.deterministic == nullptr || pair.nondeterministic == nullptr) {
      judgement.reasons.push_back("pair " + std::to_string(number) + " lacks an arm");
      continue;
    }
    PairJudgement entry{pair.deterministic->run, pair.nondeterministic->run, std::nullopt,
                        step_time_ratio(gate, pair)};
    if (!entry.step_time_ratio) {
      judgement.reasons.push_back("pair " + std::to_string(number) + " has no '" + gate.metric +
                                  "' in both runs");
    }
    judgement.pairs.push_back(std::move(entry));
  }
  judgement.verdict = Verdict::inconclusive;
  judgement.reasons.push_back(std::to_string(judgement.pairs.size()) +
                              " pair: a bound on the overhead needs at least 4 balanced pairs");
  return judgement;
}

}  // namespace qualify::policy
