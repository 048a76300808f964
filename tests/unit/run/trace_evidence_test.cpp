// Traces out of the evidence store, and the capture plan that runs are given.
#include "engine_fixture.hpp"
#include "qualify/run/evidence.hpp"
#include "qualify/run/run_traces.hpp"
#include "qualify/traces/capture_plan.hpp"
#include "qualify/traces/seal.hpp"
#include "support/trace_generator.hpp"

namespace qualify::run {
namespace {

using test::Planted;
using traces::Outcome;

class TraceEvidence : public ::testing::Test {
 protected:
  TraceEvidence() {
    gate.kind = policy::GateKind::localization;
    gate.localization.traced_arm = "traced";
    gate.localization.untraced_arm = "plain";
  }
  void generate(const std::string& name, const std::vector<test::Plant>& plants = {}) {
    test::write_trace(folder / name, test::TraceShape{}, plants);
  }
  /// The run's evidence, of the files that lie in `name`.
  policy::RunEvidence store_run(const std::string& name, const std::string& arm) {
    Json files = Json::array();
    if (fs::exists(folder / name)) {
      for (const auto& entry : fs::directory_iterator(folder / name)) {
        const auto added = store.add_file(entry.path(), "x");
        EXPECT_TRUE(added);
        files.push_back({{"path", "output/traces/" + entry.path().filename().string()},
                         {"kind", "trace"},
                         {"digest", added->digest.str()}});
      }
    }
    const Json manifest = {{"run", name},
                           {"outputs", {{{"kind", "trace"}, {"path", "traces"}, {"format", ""}}}},
                           {"files", files}};
    policy::RunEvidence run;
    run.run = name;
    run.arm = arm;
    run.complete = true;
    run.evidence = store.add_bytes(manifest.dump(), "x")->digest;
    return run;
  }
  std::vector<policy::RunEvidence> load(std::vector<policy::RunEvidence> runs) {
    const auto loaded = load_traces(store, gate, folder / "scratch", runs);
    EXPECT_TRUE(loaded) << loaded.error().describe();
    EXPECT_TRUE(fs::is_empty(folder / "scratch")) << "views are gone again";
    return runs;
  }

  test::TempFolder folder{test::memory_folder()};
  store::BlobStore store = store::BlobStore::open(folder / "store").value();
  policy::Gate gate;
};

TEST_F(TraceEvidence, IsHeldAgainstTheFirstTracedRun) {
  generate("p", {{Planted::tensor_bit, 2, 5, 1, 1}});
  generate("a");
  generate("b");
  const auto runs = load({store_run("p", "bit"), store_run("a", "traced"),
                          store_run("none", "plain"), store_run("b", "traced")});
  EXPECT_EQ(runs[0].traces->found->outcome, Outcome::differs);
  EXPECT_EQ(runs[0].traces->found->frontier[0].place.iteration, 2);
  EXPECT_EQ(runs[0].traces->against, "a");
  EXPECT_FALSE(runs[1].traces->found) << "the reference";
  EXPECT_EQ(runs[1].traces->ranks.size(), 16U);
  EXPECT_FALSE(runs[2].traces);
  EXPECT_EQ(runs[3].traces->found->outcome, Outcome::equal);
  EXPECT_TRUE(runs[3].traces->found->full);
}

TEST_F(TraceEvidence, SealedOnesAreReadAsTheyAre) {
  for (const char* name : {"a", "b"}) {
    generate(name, name[0] == 'b' ? std::vector<test::Plant>{{Planted::wrong_data, 1, 3, 0, 0}}
                                  : std::vector<test::Plant>{});
    traces::SealOptions options;
    options.to = folder / (std::string(name) + "-sealed");
    ASSERT_TRUE(traces::seal(folder / name, options));
  }
  const auto runs = load({store_run("a-sealed", "traced"), store_run("b-sealed", "bit")});
  EXPECT_EQ(runs[1].traces->found->frontier[0].cause, traces::Cause::data);
}

TEST_F(TraceEvidence, WhatIsWrongIsSaidInNamesOfTheAttempt) {
  generate("a");
  generate("b");
  generate("c");
  fs::remove(folder / "b/rank_000007.jsonl");
  std::ofstream(folder / "c/manifest.json") << "{";
  const auto runs = load({store_run("a", "traced"), store_run("b", "bit"), store_run("c", "bit")});
  ASSERT_FALSE(runs[1].traces->faults.empty());
  EXPECT_EQ(runs[1].traces->faults[0].code, "missing-rank");
  EXPECT_EQ(runs[1].traces->faults[0].where, "output/traces");
  EXPECT_EQ(runs[1].traces->found->outcome, Outcome::inconclusive);
  EXPECT_THAT(runs[2].traces->unreadable, HasSubstr("output/traces/manifest.json"));
  EXPECT_THAT(runs[2].traces->unreadable, ::testing::Not(HasSubstr("scratch")));
  EXPECT_THAT(runs[2].traces->not_compared, HasSubstr("output/traces/manifest.json"));
}

TEST_F(TraceEvidence, ADamagedStoreIsAnErrorAndNoFinding) {
  generate("a");
  std::vector<policy::RunEvidence> runs{store_run("a", "traced")};
  const auto blob = store.path_of(hash_file(folder / "a/rank_000003.jsonl")->digest);
  fs::permissions(blob, fs::perms::owner_write, fs::perm_options::add);
  std::ofstream(blob, std::ios::app) << "x";
  const auto loaded = load_traces(store, gate, folder / "scratch", runs);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Errc::integrity);
}

class CaptureRuns : public Engine {
 protected:
  void SetUp() override {
    Engine::SetUp();
    request.gate.kind = policy::GateKind::localization;
    traces::CapturePlan plan;
    plan.level = traces::Level::L1;
    plan.ranks = {3};
    request.gate.localization.capture = policy::Capture{"repeat", "det", "fast", plan};
  }
};

TEST_F(CaptureRuns, AreGivenTheirPlanInTheirOwnFolders) {
  std::vector<JobPlan> plans;
  on_event = [&](const journal::Event& event) {
    if (event.kind != event::kSubmitted) return;
    const auto file = state->paths.runs() / "repeat-1" / event.run / "attempt-1" / kJobPlanFile;
    plans.push_back(read_job_plan(file).value());
  };
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::inconclusive);
  EXPECT_THAT(outcome->judgement.reasons.front(), HasSubstr("left no traces"));
  EXPECT_TRUE(outcome->certificate.empty());
  ASSERT_EQ(plans.size(), 2U);
  for (const JobPlan& plan : plans) {
    EXPECT_EQ(plan.capture_plan, plan.folder / kCapturePlanFile);
    const Json text = Json::parse(read_file(plan.capture_plan).value());
    EXPECT_EQ(traces::parse_capture_plan(text, "test").value(),
              request.gate.localization.capture->plan);
  }
  EXPECT_EQ(plans[1].arm, "fast");
}

TEST_F(CaptureRuns, AreOnTheNodesOfTheRunsThatParted) {
  reserve({"n1", "n2", "n3"});
  request.gate.localization.capture->nodes_a = {"n3"};
  request.gate.localization.capture->nodes_b = {"n2"};
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_THAT(outcome->state.runs[0].attempts.back().nodes, ::testing::ElementsAre("n3"));
  EXPECT_THAT(outcome->state.runs[1].attempts.back().nodes, ::testing::ElementsAre("n2"));
}

TEST_F(CaptureRuns, AreElsewhereWhereThoseNodesCannotBeHad) {
  reserve({"n1", "n2"});
  cluster->script().nodes[1].usable = false;
  request.gate.localization.capture->nodes_a = {"n2"};  // down
  request.gate.localization.capture->nodes_b = {"n9"};  // no longer granted
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_THAT(outcome->state.runs[0].attempts.back().nodes, ::testing::ElementsAre("n1"));
  EXPECT_THAT(outcome->state.runs[1].attempts.back().nodes, ::testing::ElementsAre("n1"));
}

}  // namespace
}  // namespace qualify::run
