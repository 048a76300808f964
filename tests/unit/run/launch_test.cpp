#include "qualify/run/launch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qualify::run {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

store::Bundle bundle() {
  store::Bundle bundle;
  bundle.code = {{"megatron", "", "", {}}};
  bundle.configs = {{"train", "train.yaml", {}}};
  bundle.launch.argv = {"python", "{code.megatron}/train.py", "{{\"seed\":{seed}}}"};
  bundle.environment = {{"PYTHONPATH", "{code.megatron}"}, {"NCCL_ALGO", "Ring"}};
  bundle.arms = {{"det", {"--config={config.train}"}, {{"NCCL_ALGO", "Tree"}}, {}}};
  return bundle;
}

JobPlan plan() {
  JobPlan plan;
  plan.seed = 7;
  return plan;
}

const JobLayout kLayout{"/job/bundle", "/job/output"};

TEST(Launch, ArgumentsGetTheirPlaces) {
  const auto b = bundle();
  EXPECT_THAT(workload_argv(b, b.arms[0], plan(), kLayout).value(),
              ElementsAre("python", "/job/bundle/code/megatron/train.py", "{\"seed\":7}",
                          "--config=/job/bundle/config/train/train.yaml"));
}

TEST(Launch, EnvironmentValuesGetTheirPlacesToo) {
  const auto b = bundle();
  const auto environment = workload_environment(
      b, b.arms[0], plan(), kLayout, {{"PATH", "/bin"}, {"NCCL_PROTO", "LL"}, {"EDITOR", "vi"}});
  ASSERT_TRUE(environment) << environment.error().describe();
  EXPECT_EQ(environment->at("PYTHONPATH"), "/job/bundle/code/megatron");
  EXPECT_EQ(environment->at("NCCL_ALGO"), "Tree");
  EXPECT_EQ(environment->at("PATH"), "/bin");
  EXPECT_FALSE(environment->contains("NCCL_PROTO"));  // inherited, not declared
}

TEST(Launch, AnUnknownNameIsSaidWithItsArgument) {
  auto b = bundle();
  b.launch.argv.emplace_back("{data.corpus}");
  const auto argv = workload_argv(b, b.arms[0], plan(), kLayout);
  ASSERT_FALSE(argv);
  EXPECT_THAT(argv.error().describe(), HasSubstr("'{data.corpus}'"));
}

}  // namespace
}  // namespace qualify::run
