// One attempt from claim to sentinel on this machine; the same through srun is in tests/slurm.
#include "qualify/run/job.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "qualify/run/job_plan.hpp"
#include "qualify/run/node.hpp"
#include "qualify/store/bundle.hpp"
#include "support/temp_folder.hpp"

namespace qualify::run {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

class Job : public ::testing::Test {
 protected:
  Result<Sentinel> run(const std::string& argv, const std::string& more = "") {
    std::ofstream(folder / "bundle.yaml")
        << "schema_version: 1\nname: b\nrecipe: debug\nlaunch: {argv: " << argv
        << ", tasks_per_node: 2}\narms: {det: {}}\nseeds: [7]\n"
        << more;
    const auto spec = spec::read_bundle_spec(folder / "bundle.yaml");
    if (!spec) return tl::unexpected(spec.error());
    auto blobs = store::BlobStore::open(folder / "store").value();
    const auto bundle = store::seal(*spec, blobs);
    if (!bundle) return tl::unexpected(bundle.error());
    plan.bundle = bundle->digest;
    plan.store = folder / "store";
    plan.folder = folder / "attempt";
    plan.nonce = "q1";
    plan.arm = "det";
    plan.scheduler = "local";
    plan.tasks_per_node = 2;
    EXPECT_TRUE(make_folders(plan.folder));
    EXPECT_TRUE(write_file_atomic(plan.folder / kJobPlanFile, to_json(plan).dump()));
    if (on_planned) on_planned();
    JobContext context;
    context.host = "here";
    context.environment = {{"PATH", "/usr/bin:/bin"}};
    return run_job(plan.folder / kJobPlanFile, context, clock);
  }

  test::TempFolder folder;
  SystemClock clock;
  std::function<void()> on_planned;  ///< when everything lies ready, before the job starts
  JobPlan plan = [] {
    JobPlan fresh;
    fresh.granted_nodes = {"here"};
    return fresh;
  }();
};

const std::string kRank = "[\"" RANK_PROGRAM "\", '{output}'";

TEST_F(Job, EveryTaskRunsAndEveryFileIsHashed) {
  const auto sentinel = run(kRank + "]");
  ASSERT_TRUE(sentinel) << sentinel.error().describe();
  EXPECT_EQ(sentinel->failure, "");
  EXPECT_EQ(sentinel->stage, "");
  EXPECT_THAT(sentinel->nodes, ElementsAre("here"));
  for (const char* path : {"output/metrics/rank_000001.jsonl", "output/trace/rank_000000.jsonl",
                           "logs/stdout.log", "nodes.jsonl"}) {
    EXPECT_THAT(sentinel->files, Contains(Field(&OutputFile::path, path)));
  }
  const auto nodes = read_file(plan.folder / kNodesFile).value();
  EXPECT_THAT(nodes, HasSubstr("\"node\":\"here\""));
  EXPECT_EQ(read_sentinel(plan.folder).value()->nodes, sentinel->nodes);
}

/// A second attempt in the same allocation, whose job plan lies beside the first one's.
JobPlan following(JobPlan plan, const fs::path& folder) {
  plan.folder = folder;
  plan.run = "b";
  plan.further.clear();
  return plan;
}

TEST_F(Job, AttemptsThatShareTheAllocationFollowEachOther) {
  plan.further = {folder / "second" / kJobPlanFile};
  ASSERT_TRUE(make_folders(folder / "second"));
  on_planned = [&] {
    ASSERT_TRUE(write_file_atomic(plan.further.front(),
                                  to_json(following(plan, folder / "second")).dump()));
  };
  ASSERT_TRUE(run(kRank + "]"));
  const auto first = read_sentinel(plan.folder).value();
  const auto second = read_sentinel(folder / "second").value();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(second->failure, "");
  EXPECT_THAT(second->files,
              Contains(Field(&OutputFile::path, "output/metrics/rank_000001.jsonl")));
  EXPECT_GE(second->started, first->ended);
}

TEST_F(Job, NothingFollowsAnAttemptThatFailed) {
  plan.further = {folder / "second" / kJobPlanFile};
  ASSERT_TRUE(make_folders(folder / "second"));
  on_planned = [&] {
    ASSERT_TRUE(write_file_atomic(plan.further.front(),
                                  to_json(following(plan, folder / "second")).dump()));
  };
  const auto sentinel = run(kRank + ", --exit, '5']");
  ASSERT_TRUE(sentinel);
  EXPECT_EQ(sentinel->exit_code, 5);
  EXPECT_FALSE(read_sentinel(folder / "second").value());
}

TEST_F(Job, AResumedRunIsToldWhereItsCheckpointLies) {
  plan.checkpoint = "/run/first/output/checkpoints";
  plan.checkpoint_iteration = 100;
  const auto sentinel = run(kRank + ", '{checkpoint}', '{checkpoint_iteration}']");
  ASSERT_TRUE(sentinel);
  EXPECT_THAT(sentinel->argv, Contains("/run/first/output/checkpoints"));
  EXPECT_THAT(sentinel->argv, Contains("100"));
}

TEST_F(Job, ARunThatDoesNotResumeHasNoCheckpoint) {
  const auto sentinel = run(kRank + ", '{checkpoint}']");
  ASSERT_TRUE(sentinel);
  EXPECT_THAT(sentinel->failure, HasSubstr("in a resumed run only"));
}

TEST_F(Job, WhatANodeFindsForbidsTheWorkload) {
  plan.granted_nodes = {"elsewhere"};
  const auto sentinel = run(kRank + "]");
  ASSERT_TRUE(sentinel);
  EXPECT_EQ(sentinel->stage, "verify");
  EXPECT_THAT(sentinel->failure, HasSubstr("node here was not granted"));
  EXPECT_FALSE(fs::exists(plan.folder / "output" / "metrics"));
}

TEST_F(Job, AWorkloadThatFailsLeavesItsFilesHashed) {
  const auto sentinel = run(kRank + ", --exit, '5']");
  ASSERT_TRUE(sentinel);
  EXPECT_EQ(sentinel->stage, "train");
  EXPECT_EQ(sentinel->exit_code, 5);
  EXPECT_THAT(sentinel->failure, HasSubstr("exit code 5"));
  EXPECT_THAT(sentinel->files, Contains(Field(&OutputFile::path, HasSubstr("metrics/rank_"))));
}

TEST_F(Job, WhatCannotBeStartedIsSaidInTheResult) {
  const auto sentinel = run("[/nonexistent/program]");
  ASSERT_TRUE(sentinel);
  EXPECT_EQ(sentinel->stage, "train");
  EXPECT_NE(sentinel->exit_code, 0);
  EXPECT_THAT(sentinel->failure, HasSubstr("/nonexistent/program"));
}

TEST_F(Job, ASecondJobOfTheAttemptDoesNothing) {
  ASSERT_TRUE(run(kRank + "]"));
  const auto before = read_file(plan.folder / kSentinelFile).value();
  JobContext context;
  context.host = "elsewhere";
  const auto second = run_job(plan.folder / kJobPlanFile, context, clock);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::already_exists);
  EXPECT_EQ(read_file(plan.folder / kSentinelFile).value(), before);
}

}  // namespace
}  // namespace qualify::run
