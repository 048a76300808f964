#include "equal_runs.hpp"

namespace qualify::policy {
namespace {

/// Two equal runs, and a baseline that is equal to both.
class BaselineJudge : public EqualRuns {
 protected:
  BaselineJudge() {
    gate.kind = GateKind::baseline;
    gate.baseline = "v3";
    established = runs[0];
    established.allocation = "job-long-ago";
    established.metrics.wall_clock_marks = "json-lines:long ago";
  }
  Judgement judged() const { return judge(gate, runs, &established); }
  /// The candidate computes something else, the same in each of its runs.
  void change_candidate() {
    for (std::size_t run = 0; run < runs.size(); ++run) set(run, "lm loss", 4, 1.0F);
  }
  RunEvidence established;
};

TEST_F(BaselineJudge, EqualToTheBaselinePasses) {
  const auto judgement = judged();
  ASSERT_EQ(judgement.verdict, Verdict::pass) << judgement.reasons.front();
  EXPECT_EQ(judgement.level, exactness::Level::e1);
  EXPECT_THAT(judgement.reasons.front(), HasSubstr("2 runs of arm 'det' equal baseline 'v3'"));
  ASSERT_THAT(judgement.pairs, SizeIs(2));
  EXPECT_EQ(judgement.pairs[1].run_a, kBaselineRun);
  EXPECT_EQ(judgement.pairs[1].run_b, "a");
}

TEST_F(BaselineJudge, NoRunMayBeTheBaselineItself) {
  runs[1].metrics.wall_clock_marks = established.metrics.wall_clock_marks;
  const auto judgement = judged();
  EXPECT_EQ(judgement.verdict, Verdict::inconclusive);
  EXPECT_THAT(judgement.reasons.at(0), HasSubstr("baseline and b are one run filed twice"));
}

TEST_F(BaselineJudge, RepeatableButDifferentFailsAsAChangeOfTheBaseline) {
  change_candidate();
  const auto judgement = judged();
  EXPECT_EQ(judgement.verdict, Verdict::fail);
  EXPECT_EQ(judgement.reasons.at(0),
            "changes baseline 'v3': baseline and a: lm loss first differs at iteration 4");
  EXPECT_THAT(judgement.reasons.at(1), HasSubstr("repeatable"));
  EXPECT_TRUE(changes_baseline(judgement.reasons));
}

TEST_F(BaselineJudge, WhatIsNotRepeatableIsNoChangeOfTheBaseline) {
  change_candidate();
  set(1, "lm loss", 2, 7.0F);
  const auto judgement = judged();
  EXPECT_EQ(judgement.verdict, Verdict::fail);
  EXPECT_THAT(judgement.reasons.at(0), HasSubstr("a and b: lm loss first differs at iteration 2"));
  EXPECT_THAT(judgement.reasons, Contains(HasSubstr("differs from baseline 'v3'")));
  EXPECT_FALSE(changes_baseline(judgement.reasons));
}

TEST_F(BaselineJudge, NorIsOneWhoseRepeatabilityIsInDoubt) {
  change_candidate();
  runs[1].complete = false;
  runs[1].failure = "node failure";
  EXPECT_EQ(judged().verdict, Verdict::fail);
  EXPECT_FALSE(changes_baseline(judged().reasons));
}

TEST_F(BaselineJudge, OneRunMayProveEqualityButNotRepeatability) {
  gate.runs = 1;
  runs.pop_back();
  EXPECT_EQ(judged().verdict, Verdict::pass) << judged().reasons.front();
  change_candidate();
  EXPECT_EQ(judged().verdict, Verdict::fail);
  EXPECT_FALSE(changes_baseline(judged().reasons));
  EXPECT_THAT(judged().reasons, Contains(HasSubstr("does not tell whether it is repeatable")));
}

TEST_F(BaselineJudge, WithoutTheBaselinesEvidenceNothingIsProven) {
  const auto judgement = judge(gate, runs);
  EXPECT_EQ(judgement.verdict, Verdict::inconclusive);
  EXPECT_THAT(judgement.reasons.front(), HasSubstr("baseline 'v3'"));
}

TEST_F(BaselineJudge, ABaselineThatIsShorterOrWeakerProvesNothing) {
  established.metrics.series["lm loss"].values.erase(kSteps);
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
  EXPECT_THAT(judged().reasons.front(), HasSubstr("run baseline: lm loss is missing"));
  established.metrics.series["lm loss"] = runs[0].metrics.series["lm loss"];
  gate.level = exactness::Level::e4;
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
}

TEST_F(BaselineJudge, OtherSurroundingsLimitAPassAndExplainAFailure) {
  established.environment = exactness::Environment{{"gpu.driver", "550"}, {"argv", "train"}};
  for (RunEvidence& run : runs) {
    run.environment = exactness::Environment{{"gpu.driver", "570"}, {"argv", "train"}};
  }
  EXPECT_EQ(judged().verdict, Verdict::pass);
  EXPECT_THAT(judged().limits, Contains(HasSubstr("gpu.driver")));
  change_candidate();
  EXPECT_TRUE(changes_baseline(judged().reasons));
  EXPECT_THAT(judged().reasons, Contains(HasSubstr("other than at the baseline: gpu.driver")));
}

TEST_F(BaselineJudge, SharedAllocationsAreRefusedAndLabelledAsForRepeatability) {
  runs[1].allocation = runs[0].allocation;
  EXPECT_EQ(judged().verdict, Verdict::inconclusive);
  gate.allocation = Allocation::same;
  EXPECT_EQ(judged().verdict, Verdict::pass);
  EXPECT_THAT(judged().limits, Contains(HasSubstr("same allocation")));
}

}  // namespace
}  // namespace qualify::policy
