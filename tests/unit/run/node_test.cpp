// What each node checks and records, with a driver that is none and the environment Slurm gives.
#include "qualify/run/node.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "qualify/run/job.hpp"
#include "qualify/store/bundle.hpp"
#include "support/fake_clock.hpp"
#include "support/git_repo.hpp"
#include "support/temp_folder.hpp"

namespace qualify::run {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Node : public ::testing::Test {
 protected:
  void SetUp() override {
    const test::GitRepo repository(folder / "code");
    repository.write("train.py", "print('training')\n");
    repository.write("lib/a.py", "a = 1\n");
    repository.commit();
    std::ofstream(folder / "train.yaml") << "steps: 3\n";
    std::ofstream(folder / "bundle.yaml")
        << "schema_version: 1\nname: b\nrecipe: debug\n"
           "code: {train: {repository: code}}\nconfigs: {train: {file: train.yaml}}\n"
           "launch: {argv: [python3, '{code.train}/train.py']}\narms: {det: {}}\n"
           "environment: {NCCL_ALGO: Ring}\nrequired_environment: {NCCL_ALGO: Ring}\n"
           "passed_environment: [API_TOKEN]\n";
    const auto spec = spec::read_bundle_spec(folder / "bundle.yaml");
    ASSERT_TRUE(spec) << spec.error().describe();
    auto blobs = store::BlobStore::open(folder / "store").value();
    const auto bundle = store::seal(*spec, blobs);
    ASSERT_TRUE(bundle) << bundle.error().describe();
    plan.bundle = bundle->digest;
    plan.store = folder / "store";
    plan.folder = folder / "attempt";
    plan.nonce = "q1";
    plan.arm = "det";
    plan.scheduler = "slurm";
    plan.reservation = "night";
    plan.nodes = 2;
    plan.gpus_per_node = 2;
    plan.granted_nodes = {"gpu0001", "gpu0002"};
    ASSERT_TRUE(make_folders(plan.folder));
    ASSERT_TRUE(store::materialize(blobs, *bundle, plan.folder / "bundle"));
    ::setenv("QUALIFY_FAKE_NVML", (folder / "nvml").c_str(), 1);
  }
  void TearDown() override { ::unsetenv("QUALIFY_FAKE_NVML"); }

  JobContext on(const std::string& node, const std::string& id = "0") {
    JobContext context;
    context.host = "host-" + node;
    context.gpu_library = FAKE_NVML;
    context.environment = {{"PATH", "/usr/bin:/bin"},
                           {"SLURMD_NODENAME", node},
                           {"SLURM_NODEID", id},
                           {"SLURM_JOB_ID", "7"},
                           {"SLURM_JOB_NODELIST", "gpu[0001-0002]"},
                           {"SLURM_JOB_RESERVATION", "night"},
                           {"NCCL_PROTO", "LL128"},
                           {"API_TOKEN", "hunter2"}};
    return context;
  }
  std::vector<std::string> verify(const JobContext& context) {
    return verify_node(plan, context, clock).value();
  }
  Json record(const std::string& file) {
    return parse_json(read_file(plan.folder / "nodes" / file).value(), file).value();
  }
  /// Makes a laid-out file writable, as root or a bad disk would.
  fs::path broken(const std::string& path) {
    const fs::path file = plan.folder / "bundle" / path;
    fs::permissions(file.parent_path(), fs::perms::owner_all);
    if (fs::exists(file)) fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
    return file;
  }

  test::TempFolder folder;
  test::FakeClock clock;
  JobPlan plan;
};

TEST_F(Node, RecordsEnvironmentDriverGpusAndPlace) {
  EXPECT_THAT(verify(on("gpu0001")), IsEmpty());
  const Json seen = record("gpu0001.verify.json");
  EXPECT_EQ(seen.at("node"), "gpu0001");
  EXPECT_EQ(seen.at("node_list"), "gpu[0001-0002]");
  EXPECT_EQ(seen.at("restart_count"), 0);
  EXPECT_EQ(seen.at("gpus").at("driver"), "570.86.15");
  EXPECT_EQ(seen.at("gpus").at("cuda"), "12.8");
  ASSERT_THAT(seen.at("gpus").at("gpus"), SizeIs(2));
  const Json& gpu = seen.at("gpus").at("gpus")[1];
  EXPECT_EQ(gpu.at("uuid"), "GPU-00000001");
  EXPECT_EQ(gpu.at("sm_mhz"), 1980);
  EXPECT_EQ(gpu.at("memory_mhz"), 3201);
  EXPECT_TRUE(gpu.at("application_sm_mhz").is_null()) << "not supported there";
  EXPECT_TRUE(gpu.at("vbios").is_null()) << "this driver has no such function";
  EXPECT_EQ(seen.at("environment").at("NCCL_ALGO"), "Ring");
  EXPECT_FALSE(seen.at("environment").contains("NCCL_PROTO")) << "of the login shell only";
  EXPECT_FALSE(seen.at("system").at("kernel").get<std::string>().empty());
}

TEST_F(Node, NoSecretIsEverWritten) {
  verify(on("gpu0001"));
  const std::string text = read_file(plan.folder / "nodes" / "gpu0001.verify.json").value();
  EXPECT_THAT(text, ::testing::Not(HasSubstr("hunter2")));
  EXPECT_THAT(text, HasSubstr("\"API_TOKEN\":\"(passed at launch)\""));
}

TEST_F(Node, WithoutADriverThatIsSaidAndNothingElse) {
  JobContext context = on("gpu0001");
  context.gpu_library = "libnosuch-ml.so.1";
  EXPECT_THAT(verify(context), IsEmpty());
  const Json gpus = record("gpu0001.verify.json").at("gpus");
  EXPECT_TRUE(gpus.at("driver").is_null());
  EXPECT_THAT(gpus.at("fault").get<std::string>(), HasSubstr("libnosuch-ml.so.1"));
}

TEST_F(Node, ADriverThatDoesNotStartIsNamed) {
  std::ofstream(folder / "nvml") << "broken";
  verify(on("gpu0001"));
  EXPECT_EQ(record("gpu0001.verify.json").at("gpus").at("fault"), "nvmlInit: Driver Not Loaded");
}

TEST_F(Node, FewerGpusThanPlannedForbidAStart) {
  plan.gpus_per_node = 8;
  EXPECT_THAT(verify(on("gpu0001")), ElementsAre(HasSubstr("sees 2 GPUs, 8 are needed")));
}

TEST_F(Node, AChangedFileForbidsAStart) {
  std::ofstream(broken("code/train/lib/a.py"), std::ios::trunc) << "a = 2\n";
  EXPECT_THAT(verify(on("gpu0001")), ElementsAre(HasSubstr("lib/a.py is not what was sealed")));
}

TEST_F(Node, EveryKindOfDifferenceIsNamedAtOnce) {
  std::ofstream(broken("code/train/lib/a.py"), std::ios::app) << "more\n";
  fs::remove(broken("code/train/train.py"));
  std::ofstream(broken("code/train/sitecustomize.py")) << "import os\n";
  std::ofstream(broken("config/train/train.yaml"), std::ios::trunc) << "steps: 4\n";
  const auto faults = verify(on("gpu0001"));
  EXPECT_THAT(faults, Contains(HasSubstr("lib/a.py is not what was sealed")));
  EXPECT_THAT(faults, Contains(HasSubstr("train.py is missing")));
  EXPECT_THAT(faults, Contains(HasSubstr("sitecustomize.py was never sealed")));
  EXPECT_THAT(faults, Contains(HasSubstr("train.yaml is not what was sealed")));
}

TEST_F(Node, ABlobThatRottedForbidsAStart) {
  for (const auto& entry : fs::directory_iterator(folder / "store" / "blobs" / "sha256")) {
    if (entry.file_size() < 2048) continue;  // the code archive is the largest
    fs::permissions(entry.path(), fs::perms::owner_all);
    std::ofstream(entry.path(), std::ios::app) << "x";
  }
  EXPECT_THAT(verify(on("gpu0001")), Contains(HasSubstr("does not have its digest")));
}

TEST_F(Node, AnotherPlaceThanGrantedForbidsAStart) {
  EXPECT_THAT(verify(on("gpu0003")), AllOf(Contains("node gpu0003 was not granted"),
                                           Contains(HasSubstr("not among those of the job"))));
  JobContext context = on("gpu0001");
  context.environment["SLURM_JOB_NODELIST"] = "gpu[0001,0009]";
  EXPECT_THAT(verify(context), ElementsAre("the job has node gpu0009, which was not granted"));
  context = on("gpu0001");
  context.environment["SLURM_JOB_NODELIST"] = "gpu0001";
  EXPECT_THAT(verify(context), ElementsAre(HasSubstr("1 nodes (gpu0001), 2 were planned")));
  context = on("gpu0001");
  context.environment.erase("SLURM_JOB_RESERVATION");
  EXPECT_THAT(verify(context), ElementsAre(HasSubstr("runs in no reservation")));
  context = on("gpu0001");
  context.environment["SLURM_RESTART_COUNT"] = "1";
  EXPECT_THAT(verify(context), ElementsAre(HasSubstr("restarted the job (1 times)")));
}

TEST_F(Node, EachNodeHashesItsShareAndTogetherTheyHashAll) {
  ASSERT_TRUE(make_folders(plan.folder / "output"));
  Json list = Json::array();
  for (int i = 0; i < 5; ++i) {
    const std::string path = "output/f" + std::to_string(i);
    std::ofstream(plan.folder / path) << i;
    list.push_back(path);
  }
  ASSERT_TRUE(write_file_atomic(plan.folder / kCollectList, list.dump()));
  for (const auto& [name, id] : {std::pair{"gpu0001", "0"}, {"gpu0002", "1"}}) {
    verify(on(name, id));
    EXPECT_THAT(collect_node(plan, on(name, id), clock).value(), IsEmpty());
  }
  EXPECT_THAT(record("gpu0001.collect.json").at("files"), SizeIs(3));
  const NodeRecords joined = join_nodes(plan, {"gpu0001", "gpu0002"}, true);
  EXPECT_THAT(joined.faults, IsEmpty());
  EXPECT_THAT(joined.names, ElementsAre("gpu0001", "gpu0002"));
  EXPECT_THAT(joined.files, SizeIs(5));
  EXPECT_THAT(joined.lines, SizeIs(2));
}

TEST_F(Node, AFileThatIsNotSeenIsWaitedForAndThenNamed) {
  ASSERT_TRUE(write_file_atomic(plan.folder / kCollectList, R"(["output/late"])"));
  const Time before = clock.now();
  EXPECT_THAT(collect_node(plan, on("gpu0001"), clock).value(),
              ElementsAre(HasSubstr("output/late")));
  EXPECT_GE(clock.now() - before, std::chrono::seconds(30));
}

TEST_F(Node, WhatTheTasksReallyGotIsHeldToTheBundle) {
  ASSERT_TRUE(write_file_atomic(plan.folder / kCollectList, "[]"));
  ASSERT_TRUE(make_folders(plan.folder / "nodes"));
  using std::string_literals::operator""s;
  std::ofstream(plan.folder / "nodes" / "gpu0001.environment")
      << "NCCL_ALGO=Tree\0PATH=/opt/bin\0TWO=a\nb\0"s;
  EXPECT_THAT(collect_node(plan, on("gpu0001"), clock).value(),
              ElementsAre(HasSubstr("the tasks got NCCL_ALGO=Tree, the bundle requires Ring")));
  const Json seen = record("gpu0001.collect.json").at("task_environment");
  EXPECT_EQ(seen.at("PATH"), "/opt/bin");
  EXPECT_EQ(seen.at("TWO"), "a\nb");
}

TEST_F(Node, AGpuThatFailedDuringTheRunMakesItDoubtful) {
  ASSERT_TRUE(write_file_atomic(plan.folder / kCollectList, "[]"));
  std::ofstream(folder / "nvml") << "0";
  verify(on("gpu0001"));
  std::ofstream(folder / "nvml", std::ios::trunc) << "3";
  ASSERT_TRUE(collect_node(plan, on("gpu0001"), clock));
  plan.nodes = 1;
  EXPECT_THAT(join_nodes(plan, {"gpu0001"}, true).faults,
              Contains(HasSubstr("uncorrected memory errors during the run: 0 before, 3 after")));
}

TEST_F(Node, ANodeThatIsSilentOrOfAnotherAttemptIsNamed) {
  verify(on("gpu0001"));
  EXPECT_THAT(join_nodes(plan, {"gpu0001", "gpu0002"}, false).faults,
              ElementsAre("node gpu0002: it left no record"));
  plan.nonce = "q2";
  EXPECT_THAT(join_nodes(plan, {"gpu0001"}, false).faults,
              ElementsAre(HasSubstr("another attempt")));
}

}  // namespace
}  // namespace qualify::run
