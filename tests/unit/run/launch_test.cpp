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

TEST(Launch, WhatTheBundleRequiresMustBeSoInsideAndOutside) {
  auto b = bundle();
  b.required_environment = {{"NCCL_ALGO", "Tree"}};
  EXPECT_TRUE(workload_environment(b, b.arms[0], plan(), kLayout, {{"NCCL_ALGO", "Tree"}}));
  EXPECT_TRUE(workload_environment(b, b.arms[0], plan(), kLayout, {}));
  const auto outside = workload_environment(b, b.arms[0], plan(), kLayout, {{"NCCL_ALGO", "Ring"}});
  ASSERT_FALSE(outside);
  EXPECT_THAT(outside.error().describe(), HasSubstr("NCCL_ALGO is 'Ring'"));
  b.required_environment = {{"NCCL_ALGO", "Ring"}};  // but the arm says Tree
  const auto inside = workload_environment(b, b.arms[0], plan(), kLayout, {});
  ASSERT_FALSE(inside);
  EXPECT_THAT(inside.error().describe(), HasSubstr("effective is 'Tree'"));
}

TEST(Launch, AnUnknownNameIsSaidWithItsArgument) {
  auto b = bundle();
  b.launch.argv.emplace_back("{data.corpus}");
  const auto argv = workload_argv(b, b.arms[0], plan(), kLayout);
  ASSERT_FALSE(argv);
  EXPECT_THAT(argv.error().describe(), HasSubstr("'{data.corpus}'"));
}

TEST(Srun, SpreadsTasksOverNodesOneWordAnOption) {
  JobPlan p = plan();
  p.nodes = 384;
  p.gpus_per_node = 8;
  EXPECT_THAT(srun_argv("/usr/bin/srun", p, 8, true),
              ElementsAre("/usr/bin/srun", "--nodes=384", "--ntasks=3072", "--ntasks-per-node=8",
                          "--wait=0", "--kill-on-bad-exit=1", "--gpus-per-node=8"));
}

store::Bundle with_container(spec::ContainerKind kind) {
  store::Bundle b = bundle();
  b.container.kind = kind;
  b.container.reference = "nvcr.io/nvidia/pytorch@sha256:" + std::string(64, 'a');
  return b;
}

JobPlan slurm_plan() {
  JobPlan p = plan();
  p.scheduler = "slurm";
  p.folder = "/state/runs/a/attempt-1";
  return p;
}

TEST(Container, AReferenceIsEnteredThroughSrunByItsDigest) {
  store::Bundle b = with_container(spec::ContainerKind::reference);
  b.data = {{"corpus", "", {}, "/data/corpus"}};
  b.passed_environment = {"TOKEN"};
  const auto options = container_options(b, b.arms[0], slurm_plan(), kLayout);
  ASSERT_TRUE(options) << options.error().describe();
  EXPECT_THAT(*options,
              ElementsAre("--container-image=docker://nvcr.io#nvidia/pytorch:sha256:" +
                              std::string(64, 'a'),
                          "--container-mounts=/state/runs/a/attempt-1:/state/runs/a/attempt-1,"
                          "/data/corpus:/data/corpus:ro",
                          "--container-workdir=/job/output", "--no-container-mount-home",
                          "--container-env=NCCL_ALGO,PYTHONPATH,TOKEN"));
}

TEST(Container, AnImageOfTheDefaultRegistryKeepsItsPath) {
  store::Bundle b = with_container(spec::ContainerKind::reference);
  b.container.reference = "nvidia/cuda:12.8@sha256:" + std::string(64, 'b');
  EXPECT_EQ(container_options(b, b.arms[0], slurm_plan(), kLayout).value().front(),
            "--container-image=docker://nvidia/cuda:sha256:" + std::string(64, 'b'));
}

TEST(Container, AWorkloadThatEntersItByItselfGetsNoOptions) {
  store::Bundle b = with_container(spec::ContainerKind::sif);
  b.launch.argv = {"apptainer", "exec", "{container}", "python"};
  EXPECT_THAT(container_options(b, b.arms[0], slurm_plan(), kLayout).value(), ElementsAre());
}

TEST(Container, OneThatNothingEntersIsNeverLeftOutSilently) {
  const store::Bundle sif = with_container(spec::ContainerKind::sif);
  EXPECT_EQ(container_options(sif, sif.arms[0], slurm_plan(), kLayout).error().code,
            Errc::unsupported);
  const store::Bundle reference = with_container(spec::ContainerKind::reference);
  EXPECT_EQ(container_options(reference, reference.arms[0], plan(), kLayout).error().code,
            Errc::unsupported)
      << "on this machine";
}

TEST(Container, APathThatThePluginWouldSplitIsRefused) {
  const store::Bundle b = with_container(spec::ContainerKind::reference);
  JobPlan p = slurm_plan();
  p.folder = "/state/a,b";
  EXPECT_EQ(container_options(b, b.arms[0], p, kLayout).error().code, Errc::invalid_input);
}

TEST(Rendezvous, OneTaskANodeIsToldAsTorchrunIs) {
  JobPlan p = plan();
  p.nodes = 48;
  p.gpus_per_node = 8;
  std::map<std::string, std::string> environment = {{"MASTER_PORT", "1234"}};
  add_rendezvous(environment, p, "gpu0001");
  EXPECT_EQ(environment["MASTER_ADDR"], "gpu0001");
  EXPECT_EQ(environment["MASTER_PORT"], "1234") << "what the bundle declares stands";
  EXPECT_EQ(environment["PET_NNODES"], "48");
  EXPECT_EQ(environment["PET_NPROC_PER_NODE"], "8");
  EXPECT_EQ(environment["PET_MASTER_PORT"], "1234");
  p.tasks_per_node = 8;
  std::map<std::string, std::string> several;
  add_rendezvous(several, p, "gpu0001");
  EXPECT_FALSE(several.contains("PET_NNODES"));
}

}  // namespace
}  // namespace qualify::run
