// The Slurm backend against a real controller of four nodes with eight GPUs each.
#include <gmock/gmock.h>

#include <algorithm>

#include "cluster.hpp"
#include "qualify/base/files.hpp"
#include "qualify/scheduler/grant.hpp"
#include "qualify/scheduler/job_watch.hpp"

namespace qualify::scheduler {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using SlurmBackend = test::ClusterTest;

TEST_F(SlurmBackend, NamesReleaseClusterAndController) {
  EXPECT_EQ(slurm().kind(), "slurm");
  EXPECT_THAT(slurm().describe().value(), HasSubstr("cluster qualify"));
}

TEST_F(SlurmBackend, ReadsNodesWithTheirGpus) {
  const auto nodes = slurm().nodes().value();
  ASSERT_THAT(nodes, SizeIs(4));
  for (const Node& node : nodes) {
    EXPECT_TRUE(node.usable) << node.state;
    EXPECT_EQ(node.gpus, 8u);
  }
}

TEST_F(SlurmBackend, NamesAPinnedReservationByWhatItIs) {
  const std::string name = reserve();
  const Reservation seen = reservation(name);
  EXPECT_THAT(seen.flags, ElementsAre("SPEC_NODES"));
  EXPECT_THAT(seen.nodes, ElementsAre("gpu0001", "gpu0002", "gpu0003", "gpu0004"));
  EXPECT_THAT(seen.users, ElementsAre("root"));
  EXPECT_EQ(seen.end - seen.start, 60min);
  EXPECT_THAT(unfit_for_grant(seen, slurm().nodes().value()), IsEmpty());
  EXPECT_EQ(fingerprint(seen), fingerprint(reservation(name))) << "stable between two looks";
  EXPECT_LE(std::chrono::abs(slurm().now().value() - seen.start), 30s);
}

TEST_F(SlurmBackend, RunsAJobInsideItsReservationAndFindsItByNonce) {
  const std::string name = reserve();
  JobRequest wanted = request(
      name, "srun -N4 -n4 sh -c 'echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES' > ran; exit 3");
  wanted.deadline = reservation(name).end;
  const std::string id = submit(wanted);
  const Job job = wait_until_over(wanted.nonce);
  EXPECT_EQ(job.id, id);
  EXPECT_EQ(job.state, JobState::failed);
  EXPECT_EQ(job.exit_code, 3);
  EXPECT_EQ(job.reservation, name);
  EXPECT_EQ(job.restart_count, 0u);
  EXPECT_THAT(job.nodes, ElementsAre("gpu0001", "gpu0002", "gpu0003", "gpu0004"));
  EXPECT_THAT(job.name, HasSubstr(wanted.nonce));
  EXPECT_EQ(job.user, "root");
  const std::string ran = read_file(wanted.folder + "/ran").value_or("nothing");
  EXPECT_THAT(ran, HasSubstr("gpu0004 0,1,2,3,4,5,6,7"));
}

TEST_F(SlurmBackend, RunsOnExactlyThePinnedNodes) {
  const std::string name = reserve();
  JobRequest wanted = request(name, "true");
  wanted.nodes = 2;
  wanted.pinned_nodes = {"gpu0002", "gpu0004"};
  submit(wanted);
  const Job job = wait_until_over(wanted.nonce);
  EXPECT_EQ(job.state, JobState::completed);
  EXPECT_THAT(job.nodes, ElementsAre("gpu0002", "gpu0004"));
}

TEST_F(SlurmBackend, CancelEndsTheJobAndMayBeRepeated) {
  const std::string name = reserve();
  const JobRequest wanted = request(name, "sleep 600");
  const std::string id = submit(wanted);
  wait(wanted.nonce, [](const Job& job) { return job.state == JobState::running; });
  ASSERT_TRUE(slurm().cancel(id, wanted.nonce));
  EXPECT_EQ(wait_until_over(wanted.nonce).state, JobState::cancelled);
  EXPECT_TRUE(slurm().cancel(id, wanted.nonce));
  EXPECT_TRUE(slurm().cancel("4000000", wanted.nonce)) << "unknown is ok";
}

TEST_F(SlurmBackend, NeverCancelsWhatItDidNotSubmit) {
  const std::string id = must({"sbatch", "--parsable", "--wrap", "sleep 600"});
  const std::string number = id.substr(0, id.find('\n'));
  EXPECT_TRUE(slurm().cancel(number, "q1")) << "ours has gone: nothing to do";
  EXPECT_TRUE(slurm().cancel(number, ""));
  EXPECT_THAT(must({"squeue", "-h", "-j", number, "-o", "%T"}), ::testing::Not(HasSubstr("COMPL")));
}

TEST_F(SlurmBackend, RefusesWhatCouldLeaveTheReservation) {
  const std::string name = reserve();
  for (const std::string& reservation : {std::string(), name + ",other"}) {
    const JobRequest wanted = request(reservation, "true");
    const auto submitted = slurm().submit(wanted);
    ASSERT_FALSE(submitted);
    EXPECT_EQ(submitted.error().code, Errc::invalid_input);
    EXPECT_THAT(slurm().find(wanted.nonce).value(), IsEmpty());
  }
  const JobRequest lost = request("nosuch", "true");
  const auto missing = slurm().submit(lost);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::refused);
  EXPECT_THAT(missing.error().message, HasSubstr("2053"));
  EXPECT_THAT(slurm().find(lost.nonce).value(), IsEmpty());
}

TEST_F(SlurmBackend, NodesOutsideTheReservationAreRefused) {
  JobRequest wanted = request(reserve("gpu[0001-0002]"), "true");
  wanted.nodes = 1;
  wanted.pinned_nodes = {"gpu0003"};
  const auto submitted = slurm().submit(wanted);
  ASSERT_FALSE(submitted);
  EXPECT_EQ(submitted.error().code, Errc::refused);
  EXPECT_THAT(submitted.error().message, HasSubstr("2014"));
  // Slurm may keep a record of what it refused; there is nothing behind it.
  const auto kept = slurm().find(wanted.nonce).value();
  for (const Job& job : kept) {
    EXPECT_EQ(job.state, JobState::failed);
    EXPECT_THAT(job.nodes, IsEmpty());
  }
}

TEST_F(SlurmBackend, AccessIsTheControllersToSay) {
  const auto said = [&](const std::string& reservation) {
    JobRequest wanted = request(reservation, "true");
    wanted.nodes = 1;
    const auto accepted = slurm().would_accept(wanted);
    if (accepted) return std::string("accepted");
    EXPECT_EQ(accepted.error().code, Errc::refused);
    return accepted.error().message;
  };
  const std::string mine = reserve("gpu0001");
  EXPECT_EQ(said(mine), "accepted");
  must({"scontrol", "update", "reservation=" + mine, "users=nobody"});
  EXPECT_THAT(said(mine), HasSubstr("2052"));
  EXPECT_THAT(said("nosuch"), HasSubstr("2053"));
}

TEST_F(SlurmBackend, AReservationIsNotDeletedWhileItsJobRunsAndItsNameLeavesEndedJobs) {
  const std::string name = reserve();
  const JobRequest wanted = request(name, "sleep 600");
  const std::string id = submit(wanted);
  wait(wanted.nonce, [](const Job& job) { return job.state == JobState::running; });
  EXPECT_NE(test::run_program({"scontrol", "delete", "reservation=" + name}).code, 0);
  ASSERT_TRUE(slurm().cancel(id, wanted.nonce));
  EXPECT_EQ(wait_until_over(wanted.nonce).reservation, name);
  must({"scontrol", "delete", "reservation=" + name});
  const auto jobs = slurm().find(wanted.nonce).value();
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_EQ(jobs[0].reservation, "") << "so it has to be recorded while it runs";
}

TEST_F(SlurmBackend, ADrainedNodeIsUnusableWithItsReason) {
  must({"scontrol", "update", "nodename=gpu0003", "state=drain", "reason=bad NVLink"});
  const auto nodes = slurm().nodes().value();
  ASSERT_THAT(nodes, SizeIs(4));
  EXPECT_FALSE(nodes[2].usable);
  EXPECT_EQ(nodes[2].state, "IDLE+DRAIN");
  EXPECT_THAT(nodes[2].reason, HasSubstr("bad NVLink"));
  EXPECT_TRUE(nodes[2].reason_time.has_value());
  EXPECT_TRUE(nodes[1].usable);
}

/// By the controller's own count (sdiag), since it was reset.
int questions_about_jobs() {
  const std::string text = test::run_program({"sdiag"}).text;
  int all = 0;
  // REQUEST_JOB_INFO and REQUEST_JOB_INFO_SINGLE, "… ( 2003) count:5 …"
  for (std::size_t at = text.find("REQUEST_JOB_INFO"); at != std::string::npos;
       at = text.find("REQUEST_JOB_INFO", at + 1)) {
    if (at > text.find("Remote Procedure Call statistics by user")) break;
    const std::size_t count = text.find("count:", at);
    all += std::stoi(text.substr(count + 6));
  }
  return all;
}

TEST_F(SlurmBackend, OneQuestionAPollWhateverTheNumberOfRuns) {
  constexpr int kLive = 12;
  constexpr int kPolls = 5;
  for (int i = 0; i < kLive; ++i) {
    must({"sbatch", "--hold", "--output=/dev/null", "--comment",
          "qualify nonce=w" + std::to_string(i), "--wrap", "true"});
  }
  SystemClock clock;
  for (const int runs : {1, kLive, 1000}) {
    JobWatch watch(slurm(), clock);
    for (int i = 0; i < runs; ++i) watch.add("w" + std::to_string(i));
    must({"sdiag", "--reset"});
    for (int poll = 0; poll < kPolls; ++poll) {
      const auto changes = watch.poll();
      ASSERT_TRUE(changes) << changes.error().describe();
      if (poll > 0) continue;
      const auto live = std::count_if(changes->begin(), changes->end(),
                                      [](const auto& change) { return change.job.has_value(); });
      EXPECT_EQ(live, std::min(runs, kLive));
      EXPECT_EQ(changes->size(), static_cast<std::size_t>(runs));
    }
    EXPECT_EQ(questions_about_jobs(), kPolls) << runs << " runs";
  }
}

TEST_F(SlurmBackend, SaysThatAccountingIsNotConfigured) {
  const auto jobs = slurm().accounted("qualify:gate:run", "q0123", slurm().now().value() - 1h);
  ASSERT_FALSE(jobs);
  EXPECT_EQ(jobs.error().code, Errc::unsupported);
  EXPECT_THAT(jobs.error().message, HasSubstr("not configured"));
  EXPECT_THAT(slurm().describe().value(), HasSubstr("accounting not configured"));
}

TEST_F(SlurmBackend, AControllerThatIsDownIsUnavailable) {
  const std::string name = reserve();
  kill_daemon("slurmctld");
  const JobRequest wanted = request(name, "true");
  const auto submitted = slurm().submit(wanted);
  ASSERT_FALSE(submitted);
  EXPECT_EQ(submitted.error().code, Errc::unavailable);
  const auto jobs = slurm().jobs();
  ASSERT_FALSE(jobs) << "an old answer must not stand for a present one";
  EXPECT_EQ(jobs.error().code, Errc::unavailable);
  start_daemon("slurmctld");
}

}  // namespace
}  // namespace qualify::scheduler
