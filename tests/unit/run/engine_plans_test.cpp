// Plans in which runs depend on each other's place, or on what another left.
#include "engine_fixture.hpp"
#include "qualify/ledger/ledger.hpp"
#include "qualify/run/baselines.hpp"

namespace qualify::run {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

FakeJob lasting(Duration duration) {
  FakeJob job;
  job.duration = duration;
  return job;
}

class SharedAllocation : public Engine {
 protected:
  void SetUp() override {
    Engine::SetUp();
    request.gate.allocation = policy::Allocation::same;
  }
};

TEST_F(SharedAllocation, RunsItsRunsInOneJobAndSaysThatThisIsWeaker) {
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass)
      << outcome->judgement.reasons.front();
  EXPECT_EQ(cluster->submissions(), 1U);
  EXPECT_EQ(outcome->state.runs[0].attempts[0].job_id, outcome->state.runs[1].attempts[0].job_id);
  EXPECT_THAT(outcome->judgement.limits, Contains(HasSubstr("same allocation")));
}

TEST_F(SharedAllocation, GivesTheJobTimeForAllItsRuns) {
  jobs({lasting(9min)});  // of two runs that may take five each
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
}

TEST_F(SharedAllocation, ARunThatFailsDoesNotSpoilTheOneBeforeIt) {
  FakeJob failing = ends_as(JobState::failed);
  failing.exit_code = 1;
  jobs({failing});
  failing_run = "b";
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::inconclusive);
  EXPECT_TRUE(outcome->state.runs[0].attempts[0].complete)
      << outcome->state.runs[0].attempts[0].failure;
  EXPECT_EQ(outcome->state.runs[1].attempts[0].failure, "exit code 3");
  EXPECT_EQ(outcome->state.runs[1].attempts[0].failure_class, FailureClass::workload);
  EXPECT_EQ(cluster->submissions(), 1U);
}

TEST_F(SharedAllocation, WhatWasNotBegunAfterAFailureSaysSo) {
  FakeJob failing = ends_as(JobState::failed);
  failing.exit_code = 1;
  jobs({failing});
  failing_run = "a";
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->state.runs[0].attempts[0].failure, "exit code 3");
  EXPECT_THAT(outcome->state.runs[1].attempts[0].failure, HasSubstr("not begun"));
  EXPECT_EQ(cluster->submissions(), 1U);
}

TEST_F(SharedAllocation, ANodeFailureRepeatsAllItsRuns) {
  jobs({ends_as(JobState::node_fail), FakeJob{}});
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  EXPECT_EQ(outcome->state.runs[0].attempts.size(), 2U);
  EXPECT_EQ(outcome->state.runs[1].attempts.size(), 2U);
  EXPECT_EQ(cluster->submissions(), 2U);
}

TEST_F(Engine, APairRunsOnTheSameNodes) {
  make_performance_gate();
  reserve({"n1", "n2", "n3"});
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  for (std::size_t i = 0; i < 10; i += 2) {
    EXPECT_EQ(outcome->state.runs[i].attempts.back().nodes,
              outcome->state.runs[i + 1].attempts.back().nodes);
    EXPECT_EQ(outcome->state.runs[i + 1].run.same_nodes_as, outcome->state.runs[i].run.id);
  }
}

TEST_F(Engine, RunsThatMustBeOnTheSameNodesWaitForThem) {
  request.gate.nodes = policy::NodeChoice::same;
  reserve({"n1", "n2"});
  on_event = [this](const journal::Event& event) {
    if (event.kind == event::kEnded && event.run == "a") cluster->script().nodes[0].usable = false;
    if (event.kind == event::kPreflight && event.run == "b") {
      cluster->script().nodes[0].usable = true;
    }
  };
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  EXPECT_THAT(outcome->state.runs[1].attempts.back().nodes, ElementsAre("n1"));
}

TEST_F(Engine, RunsOnDisjointNodesNeverMeet) {
  request.gate.nodes = policy::NodeChoice::disjoint;
  reserve({"n1", "n2"});
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass)
      << outcome->judgement.reasons.front();
  EXPECT_THAT(outcome->state.runs[0].attempts.back().nodes, ElementsAre("n1"));
  EXPECT_THAT(outcome->state.runs[1].attempts.back().nodes, ElementsAre("n2"));
  EXPECT_THAT(outcome->judgement.limits, Not(Contains(HasSubstr("same nodes"))));
}

TEST_F(Engine, DisjointNodesThatTheReservationDoesNotHaveAreNamed) {
  request.gate.nodes = policy::NodeChoice::disjoint;
  const auto outcome = go();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::refused);
  EXPECT_THAT(outcome.error().message, HasSubstr("must avoid the nodes of run a"));
}

TEST_F(Engine, AfterANodeFailureTheNextAttemptIsOnOtherNodes) {
  reserve({"n1", "n2"});
  jobs({ends_as(JobState::node_fail), FakeJob{}});
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  const auto& attempts = outcome->state.runs[0].attempts;
  ASSERT_EQ(attempts.size(), 2U);
  EXPECT_THAT(attempts[0].nodes, ElementsAre("n1"));
  EXPECT_THAT(attempts[1].nodes, ElementsAre("n2"));
}

TEST_F(Engine, AWorkloadWithoutANewIterationIsCancelledAsHung) {
  request.gate.heartbeat = 2min;
  jobs({lasting(4min)});
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::inconclusive);
  const Attempt& attempt = outcome->state.runs[0].attempts.back();
  EXPECT_THAT(attempt.failure, HasSubstr("hung: no new iteration for 2m"));
  EXPECT_EQ(attempt.failure_class, FailureClass::workload) << "not tried again";
  EXPECT_TRUE(outcome->state.runs[0].evidence) << "what it left is kept";
  EXPECT_EQ(cluster->find(attempt.nonce)->front().state, JobState::cancelled);
}

TEST_F(Engine, AWorkloadThatGoesOnIsNotHungHoweverLongItTakes) {
  request.gate.heartbeat = 1min;
  jobs({lasting(4min)});
  // It writes as it runs: here whenever the engine looks.
  int ticks = 0;
  on_poll = [&] {
    const auto base = state->paths.runs() / "repeat-1";
    for (const char* run : {"a", "b"}) {
      const auto logs = base / run / "attempt-1" / "logs";
      const bool runs =
          fs::exists(logs.parent_path()) && !fs::exists(logs.parent_path() / kSentinelFile);
      if (!runs) continue;
      ASSERT_TRUE(make_folders(logs));
      std::ofstream(logs / "stdout.log", std::ios::app)
          << " iteration " << ++ticks << "/ 1000 | elapsed time\n";
    }
  };
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->state.runs[0].attempts.back().failure, "");
}

TEST_F(Engine, AResultThatASlowFileSystemShowsLateIsWaitedFor) {
  hold_results = true;
  int ended = 0;  // looks since the job ended
  on_poll = [&] {
    if (!held.empty() && ++ended == 5) release_results();
  };
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->state.runs[0].attempts.back().failure, "");
}

TEST_F(Engine, AResultThatNeverComesIsMissingAfterABoundedWait) {
  hold_results = true;
  const auto begun = clock.now();
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_THAT(outcome->state.runs[0].attempts.back().failure, HasSubstr("left no result"));
  EXPECT_LT(clock.now() - begun, 10min);
  EXPECT_EQ(cluster->submissions(), 2U) << "no reason to run it again";
}

TEST_F(Engine, GpuSecondsAreCountedForEveryAttempt) {
  FakeJob failing = ends_as(JobState::node_fail);
  failing.duration = 30s;
  jobs({failing, lasting(60s)});
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->state.runs[0].attempts[0].node_seconds, 30);
  EXPECT_EQ(outcome->state.runs[0].attempts[1].node_seconds, 60);
  const auto costs = cost_by_arm({&outcome->state, 1});
  ASSERT_EQ(costs.size(), 1U);
  EXPECT_EQ(costs[0].arm, "det");
  EXPECT_EQ(costs[0].attempts, 3);
  EXPECT_EQ(costs[0].node_seconds, 150);
  EXPECT_EQ(costs[0].gpu_seconds, 0) << "nodes without GPUs";
}

TEST_F(Engine, ScaleCountsTheNodesThatReallyRan) {
  request.gate.kind = policy::GateKind::scale;
  request.gate.scale = {1, 0};
  auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass)
      << outcome->judgement.reasons.front();
  EXPECT_FALSE(outcome->certificate.empty());
  request.gate.scale = {2, 0};
  outcome = go();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::refused);
  EXPECT_EQ(cluster->submissions(), 2U) << "nothing was started for the larger gate";
}

/// The first two runs of a repeatability gate are the baseline; gate `base` is held against them.
class BaselineGate : public Engine {
 protected:
  void SetUp() override {
    Engine::SetUp();
    const auto first = go();
    ASSERT_TRUE(first) << first.error().describe();
    certificate = first->certificate;
    ASSERT_TRUE(set_baseline(*state, "v3", certificate, "ana", clock.now()));
    request.gate.kind = policy::GateKind::baseline;
    request.gate.name = "base";
    request.gate.baseline = "v3";
    request.grant.gate = "base";
  }
  std::string certificate;
};

TEST_F(BaselineGate, PassesWhereTheCandidateEqualsItAndCitesIt) {
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass)
      << outcome->judgement.reasons.front();
  ASSERT_TRUE(outcome->state.plan.baseline);
  EXPECT_EQ(outcome->state.plan.baseline->certificate, certificate);
  const auto record = ledger::Ledger(state->database).find(outcome->certificate);
  ASSERT_TRUE(record) << record.error().describe();
  EXPECT_THAT(record->envelope.payload, HasSubstr(certificate));
  const auto again = judge_recorded(*state, outcome->state, folder / "scratch");
  ASSERT_TRUE(again) << again.error().describe();
  EXPECT_EQ(to_json(*again), to_json(outcome->judgement));
}

TEST_F(BaselineGate, FailsWhereTheCandidateIsRepeatableAndDifferent) {
  last_bits = {{"a", "70"}, {"b", "70"}};
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::fail);
  EXPECT_TRUE(policy::changes_baseline(outcome->state.reasons));
  EXPECT_TRUE(outcome->certificate.empty());
}

TEST_F(BaselineGate, StaysWithTheBaselineThatItsPlanWasBoundTo) {
  const auto bound = go();
  ASSERT_TRUE(bound) << bound.error().describe();
  // The name moves on to what this very gate earned; the verdict of before does not.
  ASSERT_TRUE(set_baseline(*state, "v3", bound->certificate, "ana", clock.now()));
  const auto again = judge_recorded(*state, bound->state, folder / "scratch");
  ASSERT_TRUE(again) << again.error().describe();
  EXPECT_EQ(to_json(*again), to_json(bound->judgement));
  const auto next = go();
  ASSERT_TRUE(next) << next.error().describe();
  EXPECT_NE(next->state.plan_digest, bound->state.plan_digest);
}

TEST_F(BaselineGate, IsNotPlannedWithoutItsBaseline) {
  request.gate.baseline = "v4";
  const auto outcome = go();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::not_found);
  EXPECT_THAT(outcome.error().hint, HasSubstr("v3"));
}

class Restart : public Engine {
 protected:
  void SetUp() override {
    Engine::SetUp();
    request.gate.kind = policy::GateKind::restart;
    request.gate.resumed_arm = "again";
    request.gate.broken_arm = "wrong";
    request.gate.from_iteration = 2;
    steps = 4;
    last_bits["broken"] = "6a";
  }
};

TEST_F(Restart, ResumesFromTheCheckpointOfTheRunThatWasNotInterrupted) {
  std::vector<JobPlan> plans;
  on_event = [&](const journal::Event& event) {
    if (event.kind != event::kSubmitted) return;
    const auto file = state->paths.runs() / "repeat-1" / event.run / "attempt-1" / kJobPlanFile;
    plans.push_back(read_job_plan(file).value());
  };
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass)
      << outcome->judgement.reasons.front();
  EXPECT_FALSE(outcome->certificate.empty());
  ASSERT_EQ(plans.size(), 3U);
  EXPECT_TRUE(plans[0].checkpoint.empty());
  EXPECT_EQ(plans[1].checkpoint, plans[0].folder / "output" / "checkpoints");
  EXPECT_EQ(plans[2].checkpoint, plans[1].checkpoint);
  EXPECT_EQ(plans[2].checkpoint_iteration, 2);
}

TEST_F(Restart, FailsWhereTheResumedRunDiffers) {
  last_bits["resumed"] = "6b";
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::fail);
  EXPECT_THAT(outcome->judgement.reasons.front(), HasSubstr("first differs at iteration 3"));
}

TEST_F(Restart, ProvesNothingWhereABrokenResumeComesOutEqualToo) {
  last_bits.clear();
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::inconclusive);
  EXPECT_THAT(outcome->judgement.reasons.front(), HasSubstr("broken on purpose"));
}

TEST_F(Restart, ResumesNothingWhereTheFirstRunFailed) {
  FakeJob failing = ends_as(JobState::failed);
  failing.exit_code = 1;
  jobs({failing});
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::inconclusive);
  EXPECT_EQ(cluster->submissions(), 1U);
  EXPECT_THAT(outcome->state.runs[1].attempts, IsEmpty());
}

}  // namespace
}  // namespace qualify::run
