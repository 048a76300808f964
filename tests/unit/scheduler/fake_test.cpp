#include "qualify/scheduler/fake.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cluster_values.hpp"
#include "support/fake_clock.hpp"

namespace qualify::scheduler {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FakeCluster : public ::testing::Test {
 protected:
  static FakeScript script() {
    FakeScript script;
    script.reservations = {values::reservation()};
    script.nodes = values::nodes();
    return script;
  }
  static JobRequest request(const std::string& nonce, std::uint32_t nodes = 4) {
    JobRequest request;
    request.nonce = nonce;
    request.reservation = "sat-night";
    request.nodes = nodes;
    request.gpus_per_node = 8;
    return request;
  }
  static Job one(Fake& fake, const std::string& nonce) {
    const auto found = fake.find(nonce).value();
    EXPECT_THAT(found, SizeIs(1)) << nonce;
    return found.empty() ? Job{} : found.front();
  }

  test::FakeClock clock{values::kStart};
};

TEST_F(FakeCluster, ALostAnswerLeavesTheJobThatALostRequestDoesNot) {
  FakeScript lost = script();
  lost.jobs = {{.answer = Answer::lost_after}, {.answer = Answer::lost_before}};
  Fake fake(lost, clock);
  EXPECT_EQ(fake.submit(request("a")).error().code, Errc::unavailable);
  EXPECT_EQ(fake.submit(request("b")).error().code, Errc::unavailable);
  EXPECT_THAT(fake.find("a").value(), SizeIs(1));
  EXPECT_THAT(fake.find("b").value(), IsEmpty());
  EXPECT_EQ(fake.submissions(), 2u);
}

TEST_F(FakeCluster, WaitsForTheReservationsStart) {
  clock.set(values::kStart - 5min);
  Fake fake(script(), clock);
  ASSERT_TRUE(fake.submit(request("a")));
  EXPECT_EQ(one(fake, "a").state, JobState::pending);
  EXPECT_EQ(one(fake, "a").reason, "Reservation");
  clock.advance(6min);
  EXPECT_EQ(one(fake, "a").start_time, values::kStart);
}

TEST_F(FakeCluster, TwoJobsTakeTurnsOnTheSameNodes) {
  Fake fake(script(), clock);
  ASSERT_TRUE(fake.submit(request("a")));
  ASSERT_TRUE(fake.submit(request("b")));
  EXPECT_EQ(one(fake, "b").state, JobState::pending);
  clock.advance(61s);
  EXPECT_EQ(one(fake, "a").state, JobState::completed);
  EXPECT_EQ(one(fake, "b").state, JobState::running);
}

TEST_F(FakeCluster, TheReservationsEndKills) {
  FakeScript late = script();
  late.jobs = {{.duration = 3h}};
  Fake fake(late, clock);
  ASSERT_TRUE(fake.submit(request("a")));
  clock.advance(61min);
  EXPECT_EQ(one(fake, "a").state, JobState::timeout);
  EXPECT_EQ(one(fake, "a").end_time, values::reservation().end);
}

TEST_F(FakeCluster, AWaitingJobWhoseReservationGoesIsHeld) {
  FakeScript waiting = script();
  waiting.jobs = {{.wait = 10min}};
  Fake fake(waiting, clock);
  ASSERT_TRUE(fake.submit(request("a")));
  fake.script().reservations.clear();
  clock.advance(20min);
  const Job held = one(fake, "a");
  EXPECT_EQ(held.state, JobState::pending);
  EXPECT_TRUE(held.held_by_reservation_end);
  EXPECT_EQ(held.reservation, "");
}

TEST_F(FakeCluster, ARunningJobLosesTheNameOfADeletedReservation) {
  Fake fake(script(), clock);
  ASSERT_TRUE(fake.submit(request("a")));
  fake.script().reservations.clear();
  EXPECT_EQ(one(fake, "a").state, JobState::running);
  EXPECT_EQ(one(fake, "a").reservation, "");
}

TEST_F(FakeCluster, AnswersNothingDuringAnOutage) {
  FakeScript out = script();
  out.outages = {{values::kStart + 1min, values::kStart + 2min}};
  Fake fake(out, clock);
  ASSERT_TRUE(fake.submit(request("a")));
  clock.advance(90s);
  EXPECT_EQ(fake.jobs().error().code, Errc::unavailable);
  EXPECT_EQ(fake.submit(request("b")).error().code, Errc::unavailable);
  EXPECT_EQ(fake.cancel("1", "a").error().code, Errc::unavailable);
  clock.advance(60s);
  EXPECT_EQ(one(fake, "a").state, JobState::completed);
  EXPECT_THAT(fake.find("b").value(), IsEmpty());
}

TEST_F(FakeCluster, AJobMayTakeItsTimeToClearItsNodes) {
  FakeScript slow = script();
  slow.jobs = {FakeJob{}, FakeJob{}};
  slow.jobs[0].completing = 2min;
  Fake fake(slow, clock);
  ASSERT_TRUE(fake.submit(request("a")));
  ASSERT_TRUE(fake.submit(request("b")));
  clock.advance(61s);
  EXPECT_EQ(one(fake, "a").state, JobState::completing);
  EXPECT_EQ(one(fake, "a").ended_as, JobState::completed);
  EXPECT_EQ(one(fake, "b").state, JobState::pending) << "its nodes are not clear";
  clock.advance(2min);
  EXPECT_EQ(one(fake, "a").state, JobState::completed);
  EXPECT_EQ(one(fake, "b").state, JobState::running);
}

TEST_F(FakeCluster, ForgetsEndedJobs) {
  Fake fake(script(), clock);
  ASSERT_TRUE(fake.submit(request("a")));
  clock.advance(60s + 299s);
  EXPECT_THAT(fake.find("a").value(), SizeIs(1));
  clock.advance(1s);
  EXPECT_THAT(fake.find("a").value(), IsEmpty());
}

TEST_F(FakeCluster, TellsTheObserverOnceOfStartAndEnd) {
  std::vector<std::string> told;
  Fake fake(script(), clock, [&](const JobRequest& request, const Job& job) {
    told.push_back(request.nonce + " " + name_of(job.state));
  });
  ASSERT_TRUE(fake.submit(request("a")));
  clock.advance(2min);
  (void)fake.jobs();
  (void)fake.jobs();
  EXPECT_THAT(told, ElementsAre("a running", "a completed"));
}

TEST(FakeScript, IsReadFromJson) {
  Json json = {{"reservations", {to_json(values::reservation())}},
               {"nodes", {{{"name", "gpu0001"}, {"gpus", 8}}}},
               {"foreign_jobs", {{{"id", "9"}, {"nodes", {"gpu0001"}}}}},
               {"jobs", {{{"answer", "lost_after"}, {"duration", "90s"}, {"end", "node_fail"}}}},
               {"outages", {{{"from", "2026-01-01T00:00:00Z"}, {"to", "2026-01-01T00:01:00Z"}}}},
               {"remembered", "5s"}};
  const FakeScript script = fake_script_from_json(json).value();
  EXPECT_EQ(script.jobs.at(0).answer, Answer::lost_after);
  EXPECT_EQ(script.jobs.at(0).duration, 90s);
  EXPECT_EQ(script.jobs.at(0).end, JobState::node_fail);
  EXPECT_TRUE(script.nodes.at(0).usable);
  EXPECT_EQ(script.foreign_jobs.at(0).state, JobState::running);
  EXPECT_EQ(script.outages.at(0).to - script.outages.at(0).from, 60s);
  EXPECT_EQ(script.remembered, 5s);
}

TEST(FakeScript, NamesTheMemberThatIsWrong) {
  const std::vector<std::pair<Json, const char*>> wrong = {
      {{{"jbos", Json::array()}}, "jbos"},
      {{{"jobs", {{{"end", "exploded"}}}}}, "jobs[0].end"},
      {{{"jobs", {{{"duration", 90}}}}}, "jobs[0].duration"},
      {{{"jobs", {{{"answer", "maybe"}}}}}, "jobs[0].answer"},
      {{{"nodes", 3}}, "nodes"},
      {Json::array(), "script"}};
  for (const auto& [json, where] : wrong) {
    const auto script = fake_script_from_json(json);
    ASSERT_FALSE(script) << json.dump();
    EXPECT_THAT(script.error().describe(), HasSubstr(where));
  }
}

}  // namespace
}  // namespace qualify::scheduler
