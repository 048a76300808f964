#include "qualify/exactness/environment.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace qualify::exactness {
namespace {

using ::testing::HasSubstr;

class Weigh : public ::testing::Test {
 protected:
  Weigh() {
    comparison.outcome = Outcome::equal;
    comparison.level = Level::e1;
  }
  Comparison comparison;
};

TEST(EnvironmentComparison, WhichMachineAndJobMayDiffer) {
  const auto result = compare_environments(
      {{"env.SLURM_JOB_ID", "1"}, {"node.names", "a,b"}, {"env.NCCL_ALGO", "Ring"}},
      {{"env.SLURM_JOB_ID", "2"}, {"node.names", "c,d"}, {"env.NCCL_ALGO", "Ring"}});
  ASSERT_EQ(result.differences.size(), 2U);
  for (const auto& one : result.differences)
    EXPECT_EQ(one.kind, DifferenceClass::identity) << one.name;
  EXPECT_EQ(result.why_inconclusive(), "");
}

TEST(EnvironmentComparison, WhatNobodyDeclaredMakesItInconclusiveByName) {
  const auto result = compare_environments({{"env.NCCL_ALGO", "Ring"}},
                                           {{"env.NCCL_ALGO", "Tree"}, {"env.NCCL_PROTO", "LL"}});
  EXPECT_THAT(result.why_inconclusive(), HasSubstr("env.NCCL_ALGO, env.NCCL_PROTO"));
  EXPECT_FALSE(result.differences[1].has_a);
  EXPECT_TRUE(to_json(result)["differences"][1]["a"].is_null());
}

TEST(EnvironmentComparison, TheArmsOwnDifferencesAreDeclared) {
  const auto result = compare_environments({{"env.NVTE_ALLOW_NONDETERMINISTIC_ALGO", "0"}},
                                           {{"env.NVTE_ALLOW_NONDETERMINISTIC_ALGO", "1"}},
                                           {"NVTE_ALLOW_NONDETERMINISTIC_ALGO"});
  ASSERT_EQ(result.differences.size(), 1U);
  EXPECT_EQ(result.differences[0].kind, DifferenceClass::declared);
  EXPECT_EQ(result.why_inconclusive(), "");
}

TEST(EnvironmentComparison, CountsOfNodesAndTasksAreNoIdentity) {
  // Where torchrun's ranks meet is another place in each job; how many there are is not.
  EXPECT_TRUE(is_identity("env.PET_MASTER_ADDR"));
  EXPECT_FALSE(is_identity("env.PET_NNODES"));
  EXPECT_FALSE(is_identity("SLURM_NNODES"));
  EXPECT_FALSE(is_identity("SLURM_NTASKS_PER_NODE"));
  EXPECT_FALSE(is_identity("CUDA_VISIBLE_DEVICES"));
  EXPECT_FALSE(is_identity("cuda.driver"));
}

TEST(EnvironmentComparison, NestedRecordsBecomeFlat) {
  const auto flat = environment_from(
      Json{{"env", {{"A", "1"}}}, {"gpus", {1, 2}}, {"cuda", {{"driver", "595"}}}});
  ASSERT_TRUE(flat);
  EXPECT_EQ(*flat, (Environment{{"env.A", "1"}, {"gpus", "[1,2]"}, {"cuda.driver", "595"}}));
  EXPECT_FALSE(environment_from(Json::array()));
}

TEST_F(Weigh, OnlyAnUndeclaredDifferenceTakesAnEqualityAway) {
  weigh(compare_environments({{"host", "a"}}, {{"host", "b"}}), comparison);
  EXPECT_EQ(comparison.outcome, Outcome::equal);
  weigh(compare_environments({{"x", "1"}}, {{"x", "2"}}, {"x"}), comparison);
  EXPECT_EQ(comparison.level, Level::e1);
  weigh(compare_environments({{"x", "1"}}, {{"x", "2"}}), comparison);
  EXPECT_EQ(comparison.outcome, Outcome::inconclusive);
  EXPECT_FALSE(comparison.level);
  EXPECT_THAT(comparison.reasons.back(), HasSubstr("x"));
}

TEST_F(Weigh, ADifferenceStaysOne) {
  comparison.outcome = Outcome::differs;
  weigh(compare_environments({{"x", "1"}}, {{"x", "2"}}), comparison);
  EXPECT_EQ(comparison.outcome, Outcome::differs);
}

}  // namespace
}  // namespace qualify::exactness
