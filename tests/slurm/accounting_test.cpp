// A job that the controller has purged, on a cluster with accounting: slurmdbd remembers it, or is
// down, or has not heard of it yet. And job numbers that are used again: this cluster has 24.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "gate.hpp"

namespace qualify::test {
namespace {

using namespace std::chrono_literals;
using run::event::kEnded;
using run::event::kSubmitted;
using scheduler::Job;
using scheduler::JobState;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int kFirstJobId = 1000;  // as in CMakeLists.txt
constexpr int kLastJobId = 1023;

class Accounting : public GateTest {
 protected:
  void TearDown() override {
    if (run_program({"sacctmgr", "-n", "ping"}).text.find("is UP") == std::string::npos) {
      start_daemon("slurmdbd");
    }
    GateTest::TearDown();
  }
  std::vector<Job> accounted(const scheduler::JobRequest& wanted) {
    const auto jobs = slurm().accounted(wanted.name, wanted.nonce, request_made_);
    if (!jobs) {
      ADD_FAILURE() << jobs.error().describe();
      return {};
    }
    return *jobs;
  }
  /// Runs a job to its end and until the controller has forgotten it; returns its number.
  std::string run_and_forget(const scheduler::JobRequest& wanted) {
    request_made_ = slurm().now().value() - 1min;
    const std::string id = submit(wanted);
    wait_until_over(wanted.nonce);
    wait_until_forgotten(wanted.nonce);
    return id;
  }
  void wait_until_forgotten(const std::string& nonce) {
    wait_for(
        [&] {
          const auto found = slurm().find(nonce);
          return found && found->empty();
        },
        90);
  }
  /// Somebody else's job of exactly this number: numbers go round. Asking whether a job would run
  /// uses a number up and leaves no job that holds it.
  static void give_to_somebody_else(const std::string& number, const std::string& reservation) {
    const int wanted = std::stoi(number);
    for (int i = 0; i < 100; ++i) {
      const std::string said =
          must({"sbatch", "--test-only", "--reservation=" + reservation, "--wrap", "true"});
      const std::size_t at = said.find("Job ");
      ASSERT_NE(at, std::string::npos) << said;
      const int used = std::stoi(said.substr(at + 4));
      const int next = used == kLastJobId ? kFirstJobId : used + 1;
      if (next != wanted) continue;
      ASSERT_EQ(foreign_job({"--hold"}), number);
      return;
    }
    FAIL() << "number " << number << " did not come again";
  }
  void forget_first_job() {
    at(kSubmitted, [this] {
      const auto submitted = events(kSubmitted)[0];
      wait_for([&] { return is_gone(submitted.at("job_id").get<std::string>()); }, 90);
    });
  }

 private:
  Time request_made_;
};

TEST_F(Accounting, KnowsPurgedJobsWithStateExitCodeNodesAndReservation) {
  const std::string name = reserve();
  scheduler::JobRequest wanted = ClusterTest::request(name, "exit 3");
  wanted.nodes = 2;
  wanted.pinned_nodes = {"gpu0001", "gpu0003"};
  scheduler::JobRequest killed = ClusterTest::request(name, "kill -9 $$");
  killed.nodes = 2;
  killed.pinned_nodes = {"gpu0002", "gpu0004"};
  const Time before = slurm().now().value();
  submit(killed);
  const std::string id = run_and_forget(wanted);
  wait_until_forgotten(killed.nonce);
  for (const auto* request_made : {&wanted, &killed}) {
    wait_for([&] {
      const auto known = accounted(*request_made);
      return known.size() == 1 && is_terminal(known[0].state);
    });
  }
  const auto jobs = accounted(wanted);
  ASSERT_THAT(jobs, SizeIs(1));
  const Job& job = jobs[0];
  EXPECT_TRUE(job.accounted);
  EXPECT_EQ(job.id, id);
  EXPECT_EQ(job.nonce, wanted.nonce);
  EXPECT_EQ(job.state, JobState::failed);
  EXPECT_EQ(job.exit_code, 3);
  EXPECT_EQ(job.signal, 0);
  EXPECT_EQ(job.reservation, name);
  EXPECT_EQ(job.user, "root");
  EXPECT_EQ(job.restart_count, 0U);
  EXPECT_THAT(job.nodes, ElementsAre("gpu0001", "gpu0003"));
  ASSERT_TRUE(job.submit_time && job.start_time && job.end_time && job.time_limit);
  EXPECT_GE(*job.submit_time, before - 1s);
  EXPECT_GE(*job.start_time, *job.submit_time);
  EXPECT_GE(*job.end_time, *job.start_time);
  EXPECT_EQ(*job.time_limit, 5min);
  const auto signalled = accounted(killed);
  ASSERT_THAT(signalled, SizeIs(1));
  EXPECT_EQ(signalled[0].state, JobState::failed);
  EXPECT_EQ(signalled[0].signal, 9);
  EXPECT_EQ(signalled[0].exit_code, 0);
  // Only what was asked for.
  scheduler::JobRequest other = wanted;
  other.nonce += "x";
  EXPECT_THAT(accounted(other), IsEmpty());
  EXPECT_THAT(slurm().describe().value(), HasSubstr("accounting by slurmdbd"));
}

TEST_F(Accounting, ANumberThatIsSomebodyElsesNowIsNotTakenForOurs) {
  const std::string name = reserve();
  const scheduler::JobRequest wanted = ClusterTest::request(name, "true");
  const std::string number = run_and_forget(wanted);
  give_to_somebody_else(number, name);
  const auto now = slurm().jobs().value();
  const auto theirs =
      std::find_if(now.begin(), now.end(), [&](const Job& job) { return job.id == number; });
  ASSERT_NE(theirs, now.end());
  EXPECT_EQ(theirs->nonce, "");
  EXPECT_THAT(slurm().find(wanted.nonce).value(), IsEmpty());
  // Ending ours does not touch theirs.
  EXPECT_TRUE(slurm().cancel(number, wanted.nonce));
  EXPECT_EQ(must({"squeue", "-h", "-j", number, "-o", "%T"}), "PENDING\n");
  // Accounting has both under the number; ours is the older. Of how it ended it may hear later.
  wait_for([&] {
    const auto known = accounted(wanted);
    return known.size() == 1 && is_terminal(known[0].state);
  });
  const auto jobs = accounted(wanted);
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_EQ(jobs[0].id, number);
  EXPECT_EQ(jobs[0].state, JobState::completed);
  EXPECT_LT(*jobs[0].submit_time, *theirs->submit_time);
}

TEST_F(Accounting, ARunWhoseNumberWentToSomebodyElseIsJudgedByItsOwnRecord) {
  const std::string name = reserve();
  grant(name);
  std::string number;
  at(kSubmitted, [&] {
    number = events(kSubmitted)[0].at("job_id").get<std::string>();
    wait_for([&] { return is_gone(number); }, 90);
    give_to_somebody_else(number, name);
  });
  // It is let go before the second run's preflight.
  at(kEnded, [&] {
    EXPECT_EQ(must({"squeue", "-h", "-j", number, "-o", "%T"}), "PENDING\n") << "left alone";
    must({"scancel", number});
  });
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass) << events(kEnded)[0].dump();
  const Json job = events(kEnded)[0].at("job");
  SCOPED_TRACE(job.dump());
  EXPECT_EQ(job.at("id"), number);
  EXPECT_EQ(job.at("accounted"), true);
  EXPECT_EQ(job.at("name"), "qualify:repeat:a:" + job.at("nonce").get<std::string>());
  EXPECT_EQ(events(kEnded)[1].at("job").at("accounted"), false);
  EXPECT_EQ(jobs_submitted(), 3U) << "two of ours and the foreign one";
}

TEST_F(Accounting, ThatIsDownIsWaitedForAndThenNobodyKnows) {
  limits.accounting = 4s;
  grant(reserve());
  stop_daemon("slurmdbd");
  forget_first_job();
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::inconclusive);
  EXPECT_EQ(events(kEnded)[0].at("failure_class"), "disagreement");
  EXPECT_THAT(events(kEnded)[0].at("failure").get<std::string>(),
              HasSubstr("accounting does not answer: "));
  EXPECT_EQ(jobs_submitted(), 2U) << "not started again";
}

TEST_F(Accounting, ThatLagsIsWaitedForWithoutASecondJob) {
  grant(reserve());
  // What slurmctld has for it waits until it is there again, and some time longer.
  stop_daemon("slurmdbd");
  std::vector<std::string> answers;
  at(kSubmitted, [&] {
    const auto submitted = events(kSubmitted)[0];
    wait_for([&] { return is_gone(submitted.at("job_id").get<std::string>()); }, 90);
    start_daemon("slurmdbd");
    clock.on_sleep = [&] {
      if (!events(kEnded).empty()) return;
      const auto nonce = events(run::event::kIntent)[0].at("nonce").get<std::string>();
      const auto jobs = slurm().accounted("qualify:repeat:a", nonce, request.grant.granted_at - 1h);
      answers.push_back(!jobs           ? jobs.error().message
                        : jobs->empty() ? "nothing"
                                        : scheduler::name_of(jobs->front().state));
    };
  });
  const auto outcome = run();
  clock.on_sleep = {};
  for (const auto& answer : answers) std::cout << "accounting said: " << answer << '\n';
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  EXPECT_EQ(events(kEnded)[0].at("job").at("accounted"), true);
  EXPECT_THAT(answers, Not(IsEmpty())) << "it did not lag";
  EXPECT_EQ(jobs_submitted(), 2U);
}

}  // namespace
}  // namespace qualify::test
