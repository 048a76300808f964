#include "qualify/policy/judge.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "support/step_simulation.hpp"

namespace qualify::policy {
namespace {

RunEvidence evidence_of(const statistics::StepSeries& series, const std::string& run,
                        const std::string& arm, std::uint32_t pair) {
  RunEvidence e;
  e.run = run;
  e.arm = arm;
  e.pair = pair;
  e.complete = true;
  evidence::Series& steps = e.metrics.series["iteration-time"];
  steps.name = "iteration-time";
  for (std::size_t i = 0; i < series.step.size(); ++i) {
    steps.values.insert_or_assign(series.step[i], {std::bit_cast<std::uint64_t>(series.seconds[i]),
                                                   evidence::Precision::float64_bits, 0, ""});
  }
  return e;
}

Gate gate_of() {
  Gate gate;
  gate.name = "cost";
  gate.kind = GateKind::performance;
  gate.deterministic_arm = "det";
  gate.nondeterministic_arm = "fast";
  gate.exclude.init_steps = 0;
  return gate;
}

/// The runs of a plan in its order: AB, BA, a placebo pair, AB, BA.
std::vector<RunEvidence> runs_of(double overhead) {
  test::Scenario s;
  s.overhead = overhead;
  s.step_noise = 0.002;
  s.launch_noise = 0.0005;
  std::mt19937_64 random(42);
  const auto request =
      test::simulate(s, random, statistics::decision_policy("change-overhead").value());
  std::vector<RunEvidence> runs;
  for (std::uint32_t i = 0; i < 4; ++i) {
    if (i == 2) {
      runs.push_back(evidence_of(request.placebo[0].deterministic, "placebo-1-first", "fast", 5));
      runs.push_back(
          evidence_of(request.placebo[0].nondeterministic, "placebo-1-second", "fast", 5));
    }
    const std::string name = "pair-" + std::to_string(i + 1);
    const auto det = evidence_of(request.pairs[i].deterministic, name + "-det", "det", i + 1);
    const auto fast =
        evidence_of(request.pairs[i].nondeterministic, name + "-nondet", "fast", i + 1);
    runs.push_back(i % 2 == 0 ? det : fast);
    runs.push_back(i % 2 == 0 ? fast : det);
  }
  return runs;
}

bool has(const Judgement& j, const std::string& code) {
  const auto& faults = j.overhead->faults;
  return std::any_of(faults.begin(), faults.end(),
                     [&](const statistics::Fault& f) { return f.code == code; });
}

TEST(JudgePerformance, EffectsLandInTheirRows) {
  EXPECT_EQ(judge(gate_of(), runs_of(0.003)).verdict, Verdict::pass);
  EXPECT_EQ(judge(gate_of(), runs_of(0.03)).verdict, Verdict::needs_decision);
  const auto slow = judge(gate_of(), runs_of(0.09));
  EXPECT_EQ(slow.verdict, Verdict::fail);
  ASSERT_EQ(slow.pairs.size(), 4U);
  EXPECT_EQ(slow.pairs[1].run_a, "pair-2-det");
  EXPECT_NEAR(*slow.pairs[1].step_time_ratio, 1.09, 0.01);
}

TEST(JudgePerformance, TellsOrderAndPlaceboFromThePlan) {
  std::vector<statistics::Fault> faults;
  const auto request = overhead_request(gate_of(), runs_of(0), faults);
  EXPECT_TRUE(faults.empty());
  ASSERT_EQ(request.pairs.size(), 4U);
  ASSERT_EQ(request.placebo.size(), 1U);
  EXPECT_EQ(request.pairs[0].order, statistics::Order::ab);
  EXPECT_EQ(request.pairs[1].order, statistics::Order::ba);
}

TEST(JudgePerformance, OnePairIsInconclusiveAndSaysHowManyAreNeeded) {
  auto runs = runs_of(0.30);
  runs.resize(2);
  Gate gate = gate_of();
  gate.pairs = 1;
  gate.placebo_pairs = 0;
  const auto j = judge(gate, runs);
  EXPECT_EQ(j.verdict, Verdict::inconclusive);
  EXPECT_EQ(j.overhead->further_pairs, 3U);
}

TEST(JudgePerformance, AnIncompleteRunIsNotDropped) {
  auto runs = runs_of(0.0);
  runs[3].complete = false;
  runs[3].failure = "exit code 3";
  const auto j = judge(gate_of(), runs);
  EXPECT_EQ(j.verdict, Verdict::inconclusive);
  EXPECT_TRUE(has(j, "incomplete-run"));
  EXPECT_NE(j.reasons[0].find("exit code 3"), std::string::npos);
}

TEST(JudgePerformance, MissingPiecesAreNamed) {
  auto runs = runs_of(0.0);
  runs[0].metrics.series.clear();
  EXPECT_TRUE(has(judge(gate_of(), runs), "missing-metric"));
  runs = runs_of(0.0);
  runs.pop_back();
  EXPECT_TRUE(has(judge(gate_of(), runs), "missing-run"));
  runs = runs_of(0.0);
  runs.erase(runs.begin() + 4, runs.begin() + 6);
  EXPECT_TRUE(has(judge(gate_of(), runs), "no-placebo"));
  runs = runs_of(0.0);
  runs[0].metrics.faults.push_back(
      {"truncated", "the line of iteration 9 is cut off", "log:9", "iteration-time", {}});
  EXPECT_TRUE(has(judge(gate_of(), runs), "damaged-metrics"));
}

TEST(JudgePerformance, FaultsInOtherMetricsDoNotMatter) {
  auto runs = runs_of(0.0);
  runs[0].metrics.faults.push_back({"nan-vanished", "no loss", "log:9", "lm loss", 9});
  EXPECT_EQ(judge(gate_of(), runs).verdict, Verdict::pass);
}

TEST(JudgePerformance, ALogThatTwoRunsShareMakesThemOneRun) {
  auto runs = runs_of(0.0);
  runs[0].metrics.wall_clock_marks = "tensorboard:aa megatron-log:bb";
  runs[1].metrics.wall_clock_marks = "megatron-log:bb";
  EXPECT_TRUE(has(judge(gate_of(), runs), "same-run"));
}

TEST(JudgePerformance, JsonIsCanonicalAndHoldsTheOverhead) {
  const Json json = to_json(judge(gate_of(), runs_of(0.03)));
  EXPECT_TRUE(canonical_json(json));
  EXPECT_EQ(json.at("overhead").at("verdict"), "needs-decision");
}

}  // namespace
}  // namespace qualify::policy
