#include <limits>

#include "equal_runs.hpp"

namespace qualify::policy {
namespace {

using Repeatability = EqualRuns;

TEST_F(Repeatability, EqualBitsPassAtE1AndSayWhatThatIsNot) {
  const auto judgement = judged();
  EXPECT_EQ(judgement.verdict, Verdict::pass) << judgement.reasons.front();
  EXPECT_EQ(judgement.level, exactness::Level::e1);
  EXPECT_THAT(judgement.limits, Contains(HasSubstr("E1")));
}

TEST_F(Repeatability, OneUlpFailsAndNamesIterationAndMetric) {
  set(1, "lm loss", 3, std::nextafter(10.0F / 3.0F, 0.0F));
  EXPECT_EQ(judged().verdict, Verdict::fail);
  EXPECT_THAT(first_reason(), HasSubstr("lm loss first differs at iteration 3"));
}

TEST_F(Repeatability, ADifferenceInAMetricThatNobodyAskedForFailsToo) {
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    set(0, "num-zeros", step, 1.0F);
    set(1, "num-zeros", step, step == 2 ? 2.0F : 1.0F);
  }
  EXPECT_EQ(judged().verdict, Verdict::fail);
  EXPECT_THAT(first_reason(), HasSubstr("num-zeros first differs at iteration 2"));
}

TEST_F(Repeatability, APrintedMetricThatNobodyAskedForLimitsThePass) {
  print("loss-scale", "1.0");
  const auto judgement = judged();
  EXPECT_EQ(judgement.verdict, Verdict::pass) << judgement.reasons.front();
  EXPECT_THAT(judgement.limits, Contains(HasSubstr("loss-scale was not proven equal")));
}

TEST_F(Repeatability, APrintedMetricThatIsAskedForProvesNothing) {
  print("loss-scale", "1.0");
  gate.required_metrics.emplace_back("loss-scale");
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
  EXPECT_THAT(first_reason(), HasSubstr("printed"));
}

TEST_F(Repeatability, AStrongerLevelThanTheEvidenceIsInconclusive) {
  gate.level = exactness::Level::e4;
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
  EXPECT_THAT(first_reason(), HasSubstr("the gate asks for E4"));
}

TEST_F(Repeatability, EqualNanIsAWorkloadThatWentWrongAndNoPass) {
  for (const std::size_t run : {0U, 1U}) {
    set(run, "lm loss", 4, std::numeric_limits<float>::quiet_NaN());
  }
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
  EXPECT_THAT(first_reason(), HasSubstr("lm loss is not finite at iteration 4"));
}

TEST_F(Repeatability, NanOnOneSideIsADifference) {
  set(1, "lm loss", 4, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(judged().verdict, Verdict::fail);
}

TEST_F(Repeatability, AMissingStepIsInconclusiveEvenIfBothMissIt) {
  for (RunEvidence& run : runs) run.metrics.series["lm loss"].values.erase(5);
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
  EXPECT_THAT(first_reason(), HasSubstr("missing at iteration 5 of 5"));
}

TEST_F(Repeatability, AMissingMetricIsInconclusive) {
  gate.required_metrics.emplace_back("grad-norm");
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
  EXPECT_THAT(first_reason(), HasSubstr("no metric 'grad-norm'"));
}

TEST_F(Repeatability, ARunThatDidNotCompleteIsInconclusiveHoweverEqual) {
  runs[1].complete = false;
  runs[1].failure = "killed by signal 9 (Killed)";
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
  EXPECT_THAT(first_reason(), HasSubstr("run b did not complete: killed by signal 9"));
}

TEST_F(Repeatability, ADifferenceInWhatAnIncompleteRunLeftIsStillDefinitive) {
  runs[1].complete = false;
  runs[1].failure = "exit code 3";
  set(1, "lm loss", 2, 1.0F);
  const auto judgement = judged();
  EXPECT_EQ(judgement.verdict, Verdict::fail);
  EXPECT_THAT(judgement.reasons, Contains(HasSubstr("did not complete")));
}

TEST_F(Repeatability, ADamagedSourceIsInconclusive) {
  evidence::ReadFault fault;
  fault.code = "truncated";
  fault.message = "the file ends in the middle of a record";
  runs[0].metrics.faults.push_back(fault);
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
  EXPECT_THAT(first_reason(), HasSubstr("middle of a record"));
}

TEST_F(Repeatability, OneRunFiledTwiceIsNoPair) {
  runs[1].metrics.wall_clock_marks = runs[0].metrics.wall_clock_marks;
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
  EXPECT_THAT(first_reason(), HasSubstr("filed twice"));
}

TEST_F(Repeatability, EqualDigestsOfWholeValuesAreE4AndNotNumbersThatWentWrong) {
  gate.required_metrics = {"weights"};
  gate.level = exactness::Level::e4;
  for (RunEvidence& run : runs) {
    evidence::Series& series = run.metrics.series["weights"];
    series.name = "weights";
    for (std::int64_t step = 1; step <= kSteps; ++step) {
      series.values.insert_or_assign(
          step,
          {0, Precision::sha256, 0, "sha256:" + std::string(64, static_cast<char>('0' + step))});
    }
  }
  const auto judgement = judged();
  EXPECT_EQ(judgement.verdict, Verdict::pass) << judgement.reasons.front();
  EXPECT_EQ(judgement.level, exactness::Level::e4);
}

TEST_F(Repeatability, NorAreThreeOfWhichTwoAreOneRun) {
  runs.push_back(runs[1]);
  runs[2].run = "c";
  runs[2].allocation = "job-c";
  gate.runs = 3;
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
  EXPECT_THAT(first_reason(), HasSubstr("b and c are one run filed twice"));
  runs[2].metrics.wall_clock_marks = "json-lines:c";
  EXPECT_EQ(judged().verdict, Verdict::pass);
}

TEST_F(Repeatability, WhereNodesAreAskedForTheyMustBeKnown) {
  gate.nodes = NodeChoice::disjoint;
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
  EXPECT_THAT(first_reason(), HasSubstr("where a and b ran is not known"));
  runs[0].nodes = {"n1"};
  runs[1].nodes = {"n2"};
  EXPECT_EQ(judged().verdict, Verdict::pass);
}

TEST_F(Repeatability, ASharedAllocationIsRefusedWhereSeparateOnesAreAskedFor) {
  runs[1].allocation = runs[0].allocation;
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
  EXPECT_THAT(first_reason(), HasSubstr("shared an allocation"));
  gate.allocation = Allocation::same;
  const auto judgement = judged();
  EXPECT_EQ(judgement.verdict, Verdict::pass);
  EXPECT_THAT(judgement.limits, Contains(HasSubstr("same allocation")));
}

TEST_F(Repeatability, TooFewRunsAreInconclusive) {
  gate.runs = 3;
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
  EXPECT_THAT(first_reason(), HasSubstr("2 of 3 runs"));
  EXPECT_EQ(judge(gate, {}).verdict, Verdict::inconclusive);
  EXPECT_THAT(judge(gate, {}).reasons, ::testing::Not(SizeIs(0)));
}

TEST_F(Repeatability, EnvironmentsMayDifferInWhatTellsRunsApart) {
  runs[0].environment =
      exactness::Environment{{"env.SLURM_JOB_ID", "1"}, {"host", "n1"}, {"argv", "train"}};
  runs[1].environment =
      exactness::Environment{{"env.SLURM_JOB_ID", "2"}, {"host", "n2"}, {"argv", "train"}};
  const auto judgement = judged();
  EXPECT_EQ(judgement.verdict, Verdict::pass);
  EXPECT_THAT(judgement.pairs[0].environment->differences, SizeIs(2));
}

TEST_F(Repeatability, AnEnvironmentThatNobodyDeclaredIsInconclusiveByName) {
  runs[0].environment = exactness::Environment{{"env.NCCL_ALGO", "Ring"}};
  runs[1].environment = exactness::Environment{{"env.NCCL_ALGO", "Tree"}};
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
  EXPECT_THAT(first_reason(), HasSubstr("env.NCCL_ALGO"));
  set(1, "lm loss", 3, 1.0F);
  EXPECT_EQ(judged().verdict, Verdict::fail) << "a difference of values is definitive";
}

/// An uninterrupted run, one that resumed after iteration 2, and one that did so wrongly.
class Restart : public EqualRuns {
 protected:
  Restart() {
    gate.kind = GateKind::restart;
    gate.resumed_arm = "resumed";
    gate.broken_arm = "broken";
    gate.from_iteration = 2;
    runs[1].arm = "resumed";
    runs.push_back(runs[1]);
    runs[2].run = "c";
    runs[2].arm = "broken";
    runs[2].allocation = "job-c";
    runs[2].metrics.wall_clock_marks = "json-lines:c";
    for (const std::size_t run : {1, 2}) {
      auto& values = runs[run].metrics.series["lm loss"].values;
      decltype(runs[run].metrics.series["lm loss"].values) later;
      for (const auto& [step, value] : values) {
        if (step > 2) later.insert_or_assign(step, value);
      }
      values = later;
    }
    set(2, "lm loss", 3, 1.0F);
  }
};

TEST_F(Restart, PassesWhereOnlyTheBrokenOneDiffers) {
  EXPECT_EQ(judged().verdict, Verdict::pass) << first_reason();
}

TEST_F(Restart, ABrokenOneThatBeganAfreshIsNoControl) {
  set(2, "lm loss", 1, 3.0F);
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
  EXPECT_THAT(first_reason(), HasSubstr("did not start from the checkpoint"));
}

TEST_F(Restart, NorIsOneThatCrashed) {
  runs[2].complete = false;
  runs[2].failure = "exit code 1";
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
  EXPECT_THAT(first_reason(), HasSubstr("run c did not complete"));
}

}  // namespace
}  // namespace qualify::policy
