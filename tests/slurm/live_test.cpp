// What can happen between submit and verdict, on the real controller, through the whole engine:
// each story ends with every run started at most once, inside its grant, and a clear word on why.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "gate.hpp"
#include "qualify/base/files.hpp"
#include "qualify/run/sentinel.hpp"
#include "qualify/run/watch.hpp"

namespace qualify::test {
namespace {

using namespace std::chrono_literals;
using run::event::kBreach;
using run::event::kEnded;
using run::event::kIntent;
using run::event::kRunning;
using run::event::kSubmitted;
using run::event::kUnanswered;
using scheduler::Job;
using scheduler::JobState;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Live = GateTest;

TEST_F(Live, TwoRunsPassWithTheEvidenceOfEveryNode) {
  grant(reserve());
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  EXPECT_FALSE(outcome->certificate.empty());
  EXPECT_EQ(jobs_submitted(), 2u);
  // Each step of the launch contract stands in the journal.
  EXPECT_THAT(events(run::event::kPreflight), SizeIs(2));
  EXPECT_THAT(events(kIntent), SizeIs(2));
  EXPECT_THAT(events(kSubmitted), SizeIs(2));
  EXPECT_THAT(events(kRunning), SizeIs(2));
  EXPECT_THAT(events(kEnded), SizeIs(2));
  for (const Json& seen : events(kRunning)) {
    EXPECT_EQ(seen.at("job").at("reservation"), request.grant.reservation.name);
    EXPECT_THAT(seen.at("job").at("nodes"), SizeIs(4));
  }
  for (const char* name : {"a", "b"}) {
    const fs::path attempt = attempt_folder(name);
    std::ifstream file(attempt / "nodes.jsonl");
    std::vector<std::string> nodes;
    for (std::string line; std::getline(file, line);) {
      const Json node = parse_json(line, "node").value();
      nodes.push_back(node.at("node").get<std::string>());
      const Json& verify = node.at("verify");
      EXPECT_EQ(verify.at("restart_count"), 0);
      EXPECT_EQ(verify.at("node_list"), "gpu[0001-0004]");
      EXPECT_EQ(verify.at("environment").at("CUDA_VISIBLE_DEVICES"), "0,1,2,3,4,5,6,7");
      EXPECT_EQ(verify.at("environment").at("NCCL_ALGO"), "Ring");
      const Json& task = node.at("collect").at("task_environment");
      EXPECT_EQ(task.at("RANK"), std::to_string(nodes.size() - 1)) << "one task a node, in order";
      EXPECT_EQ(task.at("WORLD_SIZE"), "4");
      EXPECT_EQ(task.at("MASTER_ADDR"), "gpu0001");
      EXPECT_EQ(task.at("PET_NODE_RANK"), task.at("RANK"));
      EXPECT_EQ(task.at("PET_NPROC_PER_NODE"), "8");
    }
    EXPECT_THAT(nodes, ElementsAre("gpu0001", "gpu0002", "gpu0003", "gpu0004"));
  }
}

TEST_F(Live, AWorkloadThatFailsIsTheWorkloadsFailureAndNotTriedAgain) {
  request.gate.arm = "fails";
  grant(reserve());
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_NE(outcome->judgement.verdict, policy::Verdict::pass);
  ASSERT_THAT(events(kEnded), SizeIs(2));
  for (const Json& end : events(kEnded)) {
    EXPECT_EQ(end.at("failure_class"), "workload");
    EXPECT_THAT(end.at("failure").get<std::string>(), HasSubstr("exit code 7"));
  }
  EXPECT_EQ(jobs_submitted(), 2u);
}

TEST_F(Live, TheFirstTaskThatFailsGivesTheReasonAndNotThoseThatAreEndedForIt) {
  request.gate.arm = "one_fails";
  grant(reserve());
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  ASSERT_THAT(events(kEnded), SizeIs(2));
  for (const Json& end : events(kEnded)) {
    EXPECT_EQ(end.at("failure_class"), "workload");
    EXPECT_EQ(end.at("failure"), "exit code 7 of rank 2 on node gpu0003");
  }
  const auto result = run::read_sentinel(attempt_folder("a"));
  ASSERT_TRUE(result && *result);
  EXPECT_EQ((*result)->exit_code, 7);
  EXPECT_EQ((*result)->signal, 0);
  ASSERT_TRUE((*result)->failed_task);
  EXPECT_EQ((*result)->failed_task->rank, 2U);
  EXPECT_EQ((*result)->failed_task->node, "gpu0003");
}

TEST_F(Live, ABundleThatRottedBetweenGrantAndStartIsNotRun) {
  grant(reserve());
  at(kIntent, [this] {
    for (const auto& entry :
         fs::directory_iterator(folder() / "state" / "store" / "blobs" / "sha256")) {
      if (entry.file_size() < 4096) continue;
      fs::permissions(entry.path(), fs::perms::owner_all);
      std::ofstream(entry.path(), std::ios::app) << "x";
    }
  });
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_NE(outcome->judgement.verdict, policy::Verdict::pass);
  EXPECT_FALSE(fs::exists(attempt_folder("a") / "output" / "metrics"));
}

TEST_F(Live, ReservationChangedUnderARunningJobCancelsIt) {
  request.gate.arm = "held";
  const std::string name = reserve();
  grant(name);
  at(kRunning, [&] { must({"scontrol", "update", "reservation=" + name, "duration=90"}); });
  const auto outcome = run();
  ASSERT_FALSE(outcome) << "the next preflight refuses";
  ASSERT_THAT(events(kBreach), SizeIs(1));
  EXPECT_THAT(events(kBreach)[0].at("why").get<std::string>(),
              HasSubstr("not what was granted any more"));
  ASSERT_THAT(events(kEnded), SizeIs(1));
  EXPECT_EQ(events(kEnded)[0].at("job").at("state"), "cancelled");
  EXPECT_EQ(events(kEnded)[0].at("failure_class"), "infrastructure");
  EXPECT_EQ(jobs_submitted(), 1u);
}

TEST_F(Live, AJobThatLostItsReservationIsCancelledAtOnce) {
  request.gate.arm = "held";
  grant(reserve());
  std::string job;
  at(kRunning, [&] {
    job = events(kSubmitted)[0].at("job_id").get<std::string>();
    note_taken_out(job);
    must({"scontrol", "update", "jobid=" + job, "reservationname="});
    // The story is of the first run only.
    stop_after(kEnded);
  });
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  ASSERT_THAT(events(kBreach), SizeIs(1));
  EXPECT_THAT(events(kBreach)[0].at("why").get<std::string>(), HasSubstr("lost its reservation"));
  EXPECT_EQ(events(kEnded)[0].at("job").at("state"), "cancelled");
}

TEST_F(Live, AccessRevokedWhileTheJobWaitsCancelsIt) {
  const std::string name = reserve();
  grant(name);
  at(kIntent, [&] { foreign_job({"--reservation=" + name, "--nodes=4", "--exclusive"}); });
  at(kSubmitted, [&] { must({"scontrol", "update", "reservation=" + name, "users=nobody"}); });
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  ASSERT_THAT(events(kBreach), SizeIs(1));
  EXPECT_THAT(events(kRunning), IsEmpty()) << "it never ran";
  EXPECT_EQ(events(kEnded)[0].at("job").at("state"), "cancelled");
  EXPECT_EQ(jobs_submitted(), 2u) << "the foreign one and ours";
}

TEST_F(Live, AJobThatDoesNotStartIsGivenUpAfterABoundedWait) {
  limits.pending_patience = 2s;
  const std::string name = reserve();
  grant(name);
  at(kIntent, [&] {
    must({"scontrol", "update", "nodename=gpu0004", "state=drain", "reason=just now"});
  });
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  ASSERT_THAT(events(kBreach), SizeIs(1));
  EXPECT_THAT(events(kBreach)[0].at("why").get<std::string>(),
              AllOf(HasSubstr("did not start within 2.0 s"), HasSubstr("DOWN, DRAINED")));
  EXPECT_THAT(events(kRunning), IsEmpty());
  EXPECT_THAT(outcome.error().describe(), HasSubstr("'just now"));
}

TEST_F(Live, ANodeThatDiesIsInfrastructureAndNothingIsRequeued) {
  request.gate.arm = "held";
  grant(reserve());
  at(kRunning, [&] {
    wait_until_training("a");
    kill_daemon("gpu0003");
  });
  const auto outcome = run();
  ASSERT_FALSE(outcome) << "the preflight of the next attempt names the node";
  EXPECT_THAT(outcome.error().describe(), HasSubstr("node gpu0003 is down"));
  ASSERT_THAT(events(kEnded), SizeIs(1));
  const Json end = events(kEnded)[0];
  EXPECT_EQ(end.at("failure_class"), "infrastructure");
  EXPECT_EQ(end.at("job").at("state"), "node_fail");
  EXPECT_EQ(end.at("job").at("restart_count"), 0);
  EXPECT_EQ(jobs_submitted(), 1u);
}

TEST_F(Live, AnOperatorsRequeueDoesNotRestartIt) {
  request.gate.arm = "held";
  grant(reserve());
  at(kRunning, [&] {
    const std::string job = events(kSubmitted)[0].at("job_id").get<std::string>();
    EXPECT_NE(run_program({"scontrol", "requeue", job}).code, 0) << "requeue is off";
    release();
  });
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  EXPECT_EQ(jobs_submitted(), 2u);
}

TEST_F(Live, AJobCancelledByAPersonIsNotStartedAgain) {
  request.gate.arm = "held";
  grant(reserve());
  at(kRunning, [&] { must({"scancel", events(kSubmitted)[0].at("job_id").get<std::string>()}); });
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::interrupted);
  EXPECT_EQ(jobs_submitted(), 1u);
}

TEST_F(Live, APurgedJobIsUnknownAndNeverAPass) {
  grant(reserve());
  // Away while the job ends and is forgotten: as after a login node's reboot.
  at(kSubmitted, [&] {
    const std::string job = events(kSubmitted)[0].at("job_id").get<std::string>();
    wait_for([&] { return is_gone(job); }, 60);
  });
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_NE(outcome->judgement.verdict, policy::Verdict::pass);
  EXPECT_NE(outcome->judgement.verdict, policy::Verdict::fail);
  EXPECT_EQ(events(kEnded)[0].at("failure_class"), "disagreement");
  EXPECT_THAT(events(kEnded)[0].at("failure").get<std::string>(),
              AllOf(HasSubstr("does not know the job any more"),
                    HasSubstr("accounting is not configured")));
  EXPECT_EQ(jobs_submitted(), 2u) << "not started again";
}

TEST_F(Live, AControllerThatIsDownAtSubmitCostsAnAttemptAndDoublesNothing) {
  limits.settle = 60s;  // its nodes have to be heard of first
  limits.look_for_lost = 1s;
  const std::string name = reserve();
  grant(name);
  at(kIntent, [&] {
    wait_until_saved("resv_state", name);
    kill_daemon("slurmctld");
  });
  after(kUnanswered, 1, [&] { start_daemon("slurmctld"); });
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  EXPECT_THAT(events(kUnanswered), SizeIs(1));
  ASSERT_THAT(events(kEnded), SizeIs(3));
  EXPECT_EQ(events(kEnded)[0].at("failure"), "no job came of the submission");
  EXPECT_EQ(jobs_submitted(), 2u);
}

TEST_F(Live, AControllerThatIsDownDuringPollingChangesNothing) {
  limits.settle = 60s;  // its nodes have to be heard of first
  request.gate.arm = "held";
  grant(reserve());
  at(kRunning, [&] {
    wait_until_training("a");  // a step that is being started then is tried again for minutes
    stop_daemon("slurmctld");
    clock.on_sleep = [&, polls = 0]() mutable {
      if (++polls < 2) return;
      clock.on_sleep = {};
      start_daemon("slurmctld");
      release();
    };
  });
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  EXPECT_THAT(events(kBreach), IsEmpty());
  EXPECT_EQ(jobs_submitted(), 2u);
}

TEST_F(Live, AControllerThatWasRestartedKnowsItsJobs) {
  limits.settle = 60s;  // its nodes have to be heard of first
  request.gate.arm = "held";
  grant(reserve());
  at(kRunning, [&] {
    wait_until_training("a");  // a step that is being started then is tried again for minutes
    stop_daemon("slurmctld");
    start_daemon("slurmctld");
    release();
  });
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  EXPECT_EQ(jobs_submitted(), 2u);
}

TEST_F(Live, AJobThatTheControllerForgotIsNeverAPassAndNotStartedAgain) {
  limits.settle = 60s;  // its nodes have to be heard of first
  request.gate.arm = "held";
  const std::string name = reserve();
  grant(name);
  wait_until_saved("resv_state", name);
  // Killed before it had saved what it accepted: it comes up without the job, whose number and
  // nodes it gives to others.
  at(kSubmitted, [&] {
    kill_daemon("slurmctld");
    start_daemon("slurmctld");
    release();
  });
  const auto outcome = run();
  if (outcome) {
    EXPECT_NE(outcome->judgement.verdict, policy::Verdict::pass);
  }
  ASSERT_FALSE(events(kEnded).empty());
  EXPECT_EQ(events(kEnded)[0].at("complete"), false);
  EXPECT_LE(jobs_submitted(), 2u) << "one for each run of the plan at most";
}

TEST_F(Live, ADetachedRunIsGoneOnWith) {
  request.gate.arm = "held";
  grant(reserve());
  at(kRunning, [&] { stop = run::Stop::detach; });
  ASSERT_FALSE(run());
  stop = run::Stop::none;
  release();
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  EXPECT_EQ(jobs_submitted(), 2u);
}

TEST_F(Live, ControllersWordOnJobsOfOneIdIsToldApartByNonce) {
  request.gate.arm = "held";
  grant(reserve());
  const std::string foreign = foreign_job({"--hold"});
  // The number of a job of ours that is now somebody else's.
  const auto cancelled = slurm().cancel(foreign, "q0123");
  EXPECT_TRUE(cancelled) << "ours has gone: nothing to do";
  EXPECT_EQ(must({"squeue", "-h", "-j", foreign, "-o", "%T"}), "PENDING\n");
}

TEST_F(Live, AReservationThatBecomesActiveIsUsedWithinTwoSeconds) {
  limits.start_wait = 60s;
  grant(reserve("gpu[0001-0004]", "", "now+8"));
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  const Duration took = time_of(kSubmitted) - request.grant.reservation.start;
  EXPECT_GE(took, 0s);
  EXPECT_LT(took, 2s);
  RecordProperty("seconds_from_active_to_submit",
                 std::to_string(std::chrono::duration<double>(took).count()));
}

// Below the engine, whose preflight does not let things come so far.

TEST_F(Live, ReservationEndIsToldFromAWorkloadTimeout) {
  const std::string name = reserve_for_seconds(10);
  grant(name);
  scheduler::JobRequest wanted = ClusterTest::request(name, "sleep 600");
  wanted.time_limit = 60min;  // Slurm does not ask whether it fits
  submit(wanted);
  wait(wanted.nonce, [](const Job& job) { return job.state == JobState::running; });
  const Job job = wait_until_over(wanted.nonce, 150);
  EXPECT_EQ(job.state, JobState::timeout) << "so Slurm calls it";
  const auto assessed = run::against_grant(request.grant, job);
  ASSERT_TRUE(assessed);
  EXPECT_EQ(assessed->failure_class, run::FailureClass::infrastructure);
  EXPECT_EQ(assessed->failure, "the reservation ended while the job ran");
}

TEST_F(Live, AJobThatIsHeldByItsReservationsEndIsNeverReleased) {
  const std::string name = reserve_for_seconds(10);
  grant(name);
  foreign_job({"--reservation=" + name, "--nodes=4", "--exclusive", "--time=60"});
  wait_for([&] { return must({"squeue", "-h", "-t", "R", "-o", "%A"}) != ""; });
  const scheduler::JobRequest wanted = ClusterTest::request(name, "touch ran");
  const std::string id = submit(wanted);
  const Job held = wait(
      wanted.nonce, [](const Job& job) { return job.held_by_reservation_end; }, 150);
  EXPECT_EQ(held.state, JobState::pending);
  EXPECT_EQ(held.reservation, "") << "Slurm takes the name away";
  const auto why =
      run::breach(request.grant, held, slurm().now().value(), slurm().reservations().value());
  ASSERT_TRUE(why);
  EXPECT_THAT(*why, HasSubstr("would run outside if released"));
  ASSERT_TRUE(slurm().cancel(id, wanted.nonce));
  EXPECT_EQ(wait_until_over(wanted.nonce).state, JobState::cancelled);
  EXPECT_FALSE(fs::exists(wanted.folder + "/ran"));
}

}  // namespace
}  // namespace qualify::test
