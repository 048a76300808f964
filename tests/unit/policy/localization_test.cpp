#include <gmock/gmock.h>

#include <bit>
#include <nlohmann/json.hpp>

#include "qualify/policy/judge.hpp"

namespace qualify::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kSteps = 40;

Gate gate_of() {
  Gate gate;
  gate.name = "localize";
  gate.kind = GateKind::localization;
  gate.run_limit = std::chrono::minutes(5);
  gate.required_metrics = {"lm loss"};
  gate.steps = kSteps;
  gate.exclude.warmup_steps = 4;
  LocalizationCriteria& own = gate.localization;
  own.traced_arm = "traced";
  own.untraced_arm = "plain";
  own.ranks = 4;
  own.overhead_below = 1.02;
  own.planted = {{"bit", 7, "backward", "grad.output", {2}, "op"},
                 {"sum", 9, "grad-reduce", "gradient", {0, 1}, "collective"}};
  return gate;
}

traces::Localization found_at(const Plant& plant) {
  traces::Localization found;
  found.outcome = traces::Outcome::differs;
  traces::FrontierEvent event;
  event.place.iteration = plant.iteration;
  event.place.phase = plant.phase;
  event.place.site = plant.site;
  event.place.rank = plant.ranks.front();
  event.ranks = plant.ranks;
  for (const auto cause : traces::kCauses) {
    if (plant.classification == name_of(cause)) event.cause = cause;
  }
  found.frontier.push_back(event);
  return found;
}

/// Both plants are found, four pairs and a placebo are as they have to be, tracing costs half a
/// percent.
class JudgeLocalization : public ::testing::Test {
 protected:
  JudgeLocalization() {
    for (const Plant& plant : gate.localization.planted) {
      RunEvidence& run = add("planted-" + plant.arm, plant.arm, 0, 1);
      trace(run);
      run.traces->found = found_at(plant);
    }
    for (std::uint32_t pair = 1; pair <= 4; ++pair) {
      const std::string name = "pair-" + std::to_string(pair);
      for (const bool traced : {pair % 2 == 1, pair % 2 == 0}) {
        RunEvidence& run = add(name + (traced ? "-traced" : "-plain"), traced ? "traced" : "plain",
                               pair, traced ? 1.005 : 1);
        if (traced) trace(run);
      }
    }
    for (const char* which : {"first", "second"}) {
      add(std::string("placebo-1-") + which, "plain", 5, 1);
    }
    of("pair-1-traced").traces->found.reset();
  }
  RunEvidence& add(const std::string& name, const std::string& arm, std::uint32_t pair,
                   double ratio) {
    RunEvidence run;
    run.run = name;
    run.arm = arm;
    run.pair = pair;
    run.complete = true;
    run.metrics.wall_clock_marks = "json-lines:" + name;
    for (const char* metric : {"lm loss", "iteration-time"}) {
      run.metrics.series[metric].name = metric;
    }
    run.metrics.series["iteration-time"].kind = evidence::MetricKind::wall_clock;
    const auto own = static_cast<double>(runs.size());
    for (std::int64_t step = 1; step <= kSteps; ++step) {
      set(run, step, 10.0F / static_cast<float>(step));
      const double seconds =
          ratio * (1 + 1e-4 * static_cast<double>((step * 7 + 3) % 5) + 1e-6 * own);
      run.metrics.series["iteration-time"].values.insert_or_assign(
          step, evidence::Scalar{std::bit_cast<std::uint64_t>(seconds),
                                 evidence::Precision::float64_bits, 0, ""});
    }
    runs.push_back(std::move(run));
    return runs.back();
  }
  static void set(RunEvidence& run, std::int64_t step, float loss) {
    run.metrics.series["lm loss"].values.insert_or_assign(
        step, evidence::Scalar{std::bit_cast<std::uint32_t>(loss),
                               evidence::Precision::float32_bits, 0, ""});
  }
  static void trace(RunEvidence& run) {
    TraceEvidence& traces = run.traces.emplace();
    traces.ranks = {0, 1, 2, 3};
    for (std::int64_t step = 1; step <= kSteps; ++step) traces.iterations.push_back(step);
    traces.capture_level = "L2";
    traces.against = "pair-1-traced";
    traces.found.emplace();  // equal
  }
  RunEvidence& of(const std::string& name) {
    for (RunEvidence& run : runs) {
      if (run.run == name) return run;
    }
    throw std::runtime_error(name);
  }
  Judgement judged() const { return judge(gate, runs); }
  std::string reasons() const {
    std::string all;
    for (const auto& reason : judged().reasons) all += reason + "\n";
    return all;
  }

  Gate gate = gate_of();
  std::vector<RunEvidence> runs;
};

TEST_F(JudgeLocalization, PassesWhereEverythingIsFoundAndTracingIsCheap) {
  const Judgement judgement = judged();
  EXPECT_EQ(judgement.verdict, Verdict::pass) << reasons();
  EXPECT_EQ(judgement.level, exactness::Level::e1);
  EXPECT_THAT(judgement.reasons.front(), HasSubstr("2 of 2 planted divergences were found"));
  EXPECT_THAT(reasons(), HasSubstr("tracing costs 0.50%"));
  ASSERT_TRUE(judgement.overhead);
  EXPECT_EQ(judgement.traces.size(), 5U);
  EXPECT_EQ(to_json(judgement)["traces"][0]["localization"]["classification"], "op");
}

TEST_F(JudgeLocalization, APlantThatIsNotFoundFails) {
  of("planted-bit").traces->found = traces::Localization();
  EXPECT_EQ(judged().verdict, Verdict::fail);
  EXPECT_THAT(reasons(), HasSubstr("what arm 'bit' plants was not found: the traces are equal"));
}

TEST_F(JudgeLocalization, APlantThatIsFoundElsewhereFailsAndSaysWhere) {
  const auto wrong = [&](auto change) {
    Plant other = gate.localization.planted.front();
    change(other);
    of("planted-bit").traces->found = found_at(other);
    EXPECT_EQ(judged().verdict, Verdict::fail);
    return judged().reasons.front();
  };
  EXPECT_THAT(wrong([](Plant& p) { p.iteration = 8; }), HasSubstr("iteration 8, not 7"));
  EXPECT_THAT(wrong([](Plant& p) { p.phase = "forward"; }), HasSubstr("phase forward, not"));
  EXPECT_THAT(wrong([](Plant& p) { p.site = "grad.x"; }), HasSubstr("site grad.x, not"));
  EXPECT_THAT(wrong([](Plant& p) { p.ranks = {2, 3}; }), HasSubstr("ranks 2-3, not 2"));
  EXPECT_THAT(wrong([](Plant& p) { p.classification = "data"; }), HasSubstr("class data, not op"));
}

TEST_F(JudgeLocalization, WhatNobodyPlantedFails) {
  auto& found = *of("planted-bit").traces->found;
  found.frontier.push_back(found_at(gate.localization.planted[1]).frontier.front());
  EXPECT_EQ(judged().verdict, Verdict::fail);
  EXPECT_THAT(reasons(), HasSubstr("beside it what nobody planted: iteration 9"));
}

TEST_F(JudgeLocalization, TracedRunsThatPartFail) {
  of("pair-3-traced").traces->found = found_at(gate.localization.planted[0]);
  EXPECT_EQ(judged().verdict, Verdict::fail);
  EXPECT_THAT(reasons(), HasSubstr("pair-1-traced and pair-3-traced, of one arm, part"));
}

TEST_F(JudgeLocalization, PartingWithoutAFirstEventIsInconclusive) {
  of("planted-bit").traces->found->frontier.clear();
  const auto judgement = judge(gate, runs);
  EXPECT_EQ(judgement.verdict, Verdict::inconclusive);
  EXPECT_THAT(judgement.reasons, ::testing::Contains(HasSubstr("no event is known to be first")));
}

TEST_F(JudgeLocalization, TracingThatChangesABitFails) {
  set(of("pair-2-plain"), 3, 3.5F);
  EXPECT_EQ(judged().verdict, Verdict::fail);
  EXPECT_THAT(reasons(), HasSubstr("lm loss first differs at iteration 3"));
}

TEST_F(JudgeLocalization, TracingThatCostsMoreThanDeclaredFails) {
  gate.localization.overhead_below = 1.003;
  EXPECT_EQ(judged().verdict, Verdict::fail);
  EXPECT_FALSE(judged().level);
  EXPECT_THAT(reasons(), HasSubstr("tracing costs 0.50%"));
}

TEST_F(JudgeLocalization, TooFewPairsOfAReliableMeasurementDecideNothing) {
  std::erase_if(runs, [](const RunEvidence& run) { return run.pair == 4; });
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
}

TEST_F(JudgeLocalization, IncompleteOrMissingTracesProveNothing) {
  const auto doubt = [&](const std::string& name, auto change) {
    const auto kept = runs;
    change(of(name));
    const Judgement judgement = judged();
    runs = kept;
    EXPECT_EQ(judgement.verdict, Verdict::inconclusive) << judgement.reasons.front();
    EXPECT_FALSE(wants_more(judgement)) << "no further pairs cure it";
    return judgement.reasons.front();
  };
  for (const char* name : {"planted-sum", "pair-1-traced", "pair-3-traced"}) {
    EXPECT_THAT(doubt(name, [](RunEvidence& run) { run.traces.reset(); }),
                HasSubstr("left no traces"));
    EXPECT_THAT(doubt(name, [](RunEvidence& run) { run.traces->ranks.pop_back(); }),
                HasSubstr("has traces of ranks 0-2, the gate asks for 0-3"));
    EXPECT_THAT(doubt(name, [](RunEvidence& run) { run.traces->iterations.pop_back(); }),
                HasSubstr("no iteration 40 of 40"));
    EXPECT_THAT(doubt(name,
                      [](RunEvidence& run) {
                        run.traces->faults = {{"truncated", "cut off", "rank_000001.jsonl"}};
                      }),
                HasSubstr("incomplete: cut off"));
    EXPECT_THAT(doubt(name, [](RunEvidence& run) { run.traces->unreadable = "no roots"; }),
                HasSubstr("cannot be read: no roots"));
    EXPECT_THAT(doubt(name,
                      [](RunEvidence& run) {
                        run.complete = false;
                        run.failure = "exit code 3";
                      }),
                HasSubstr("did not complete: exit code 3"));
  }
  EXPECT_THAT(doubt("planted-bit",
                    [](RunEvidence& run) {
                      run.traces->found.reset();
                      run.traces->not_compared = "seed: 1 against 2";
                    }),
              HasSubstr("were not compared: seed: 1 against 2"));
  EXPECT_THAT(doubt("pair-2-plain", [](RunEvidence& run) { trace(run); }),
              HasSubstr("left traces"));
}

TEST_F(JudgeLocalization, LessThanFullBytesIsSaid) {
  for (RunEvidence& run : runs) {
    if (run.traces) run.traces->capture_level = "L0";
  }
  EXPECT_EQ(judged().verdict, Verdict::pass);
  EXPECT_THAT(judged().limits, ::testing::Contains(HasSubstr("traces at L0")));
}

class JudgeCapture : public JudgeLocalization {
 protected:
  JudgeCapture() {
    gate = Gate();
    gate.name = "localize.capture";
    gate.kind = GateKind::localization;
    gate.run_limit = std::chrono::minutes(5);
    traces::CapturePlan plan;
    plan.level = traces::Level::L1;
    plan.sites = {"decoder.\"a\": b"};
    gate.localization.capture =
        Capture{"localize", "traced", "bit", plan, {"n1", "n2"}, {"n3", "n4"}};
    runs.clear();
    trace(add("a", "traced", 0, 1));
    runs[0].traces->found.reset();
    trace(add("b", "bit", 0, 1));
    runs[1].traces->found = found_at({"bit", 7, "backward", "grad.output", {2}, "op"});
  }
};

TEST_F(JudgeCapture, SaysWhereTheRunsPart) {
  EXPECT_EQ(judged().verdict, Verdict::fail);
  EXPECT_THAT(reasons(), HasSubstr("first divergence: iteration 7, backward, grad.output, rank 2"));
  EXPECT_EQ(judged().traces.size(), 1U);
}

TEST_F(JudgeCapture, NeverPasses) {
  runs[1].traces->found = traces::Localization();
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
  EXPECT_THAT(reasons(), HasSubstr("did not come back"));
  runs.pop_back();
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
}

TEST_F(JudgeLocalization, ComesBackFromTheJournalAndEveryFieldIsInThePolicyDigest) {
  gate.looks = {{4, 0.01}, {6, 0.04}};
  gate.pairs = 6;
  gate.exclude.checkpoint = {50, 2};
  const auto back = gate_from_json(to_json(gate));
  ASSERT_TRUE(back) << back.error().describe();
  EXPECT_EQ(policy_digest(*back), policy_digest(gate));
  EXPECT_EQ(back->localization.planted, gate.localization.planted);
  const auto changes = [&](auto change) {
    Gate other = gate;
    change(other, other.localization);
    return policy_digest(other) != policy_digest(gate);
  };
  using L = LocalizationCriteria;
  EXPECT_TRUE(changes([](Gate&, L& own) { own.traced_arm = "x"; }));
  EXPECT_TRUE(changes([](Gate&, L& own) { own.untraced_arm = "x"; }));
  EXPECT_TRUE(changes([](Gate&, L& own) { own.ranks = 5; }));
  EXPECT_TRUE(changes([](Gate&, L& own) { own.overhead_below = 1.03; }));
  EXPECT_TRUE(changes([](Gate&, L& own) { own.planted.pop_back(); }));
  EXPECT_TRUE(changes([](Gate&, L& own) { own.planted[0].arm = "x"; }));
  EXPECT_TRUE(changes([](Gate&, L& own) { own.planted[0].iteration = 1; }));
  EXPECT_TRUE(changes([](Gate&, L& own) { own.planted[0].phase = "x"; }));
  EXPECT_TRUE(changes([](Gate&, L& own) { own.planted[0].site = "x"; }));
  EXPECT_TRUE(changes([](Gate&, L& own) { own.planted[0].ranks = {1}; }));
  EXPECT_TRUE(changes([](Gate&, L& own) { own.planted[0].classification = "data"; }));
  EXPECT_TRUE(changes([](Gate& g, L&) { g.metric = "x"; }));
  EXPECT_TRUE(changes([](Gate& g, L&) { g.placebo_pairs = 0; }));
  EXPECT_TRUE(changes([](Gate& g, L&) { g.exclude.warmup_steps = 9; }));
  EXPECT_TRUE(changes([](Gate& g, L&) { g.steps = 9; }));
  EXPECT_TRUE(changes([](Gate& g, L&) { g.level = exactness::Level::e4; }));
}

TEST_F(JudgeCapture, ComesBackFromTheJournal) {
  const auto back = gate_from_json(to_json(gate));
  ASSERT_TRUE(back) << back.error().describe();
  EXPECT_EQ(policy_digest(*back), policy_digest(gate));
  EXPECT_EQ(back->localization.capture->plan, gate.localization.capture->plan);
  EXPECT_EQ(back->localization.capture->of, "localize");
  EXPECT_THAT(back->localization.capture->nodes_a, ElementsAre("n1", "n2"));
  EXPECT_THAT(back->localization.capture->nodes_b, ElementsAre("n3", "n4"));
}

}  // namespace
}  // namespace qualify::policy
