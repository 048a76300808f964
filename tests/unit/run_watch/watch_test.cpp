#include "qualify/run/watch.hpp"

#include <gmock/gmock.h>

#include "qualify/base/files.hpp"
#include "support/system_calls.hpp"
#include "support/temp_folder.hpp"

namespace qualify::run {
namespace {

using namespace std::chrono_literals;
using scheduler::Job;
using scheduler::JobState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Watch : public ::testing::Test {
 protected:
  Watch() {
    grant.reservation.name = "sat";
    grant.reservation.start = start;
    grant.reservation.end = start + 1h;
    grant.reservation.flags = {"SPEC_NODES"};
    grant.reservation.nodes = {"gpu0001", "gpu0002"};
    reservations = {grant.reservation};
    job.id = "7";
    job.state = JobState::running;
    job.reservation = "sat";
    job.nodes = {"gpu0001", "gpu0002"};
    job.submit_time = start + 1min;
    job.start_time = start + 2min;
    job.time_limit = 30min;
    now = start + 10min;
  }
  std::optional<std::string> why() const { return breach(grant, job, now, reservations); }
  void wait_in_queue() {
    job.state = JobState::pending;
    job.nodes.clear();
    job.start_time.reset();
    now = *job.submit_time + 1min;
  }

  const Time start{std::chrono::seconds(1767225600)};
  scheduler::Grant grant;
  std::vector<scheduler::Reservation> reservations;
  Job job;
  Time now;
};

TEST_F(Watch, AJobInItsGrantGoesOn) {
  EXPECT_EQ(why(), std::nullopt);
  wait_in_queue();
  EXPECT_EQ(why(), std::nullopt);
  EXPECT_EQ(against_grant(grant, job), std::nullopt);
}

TEST_F(Watch, AHeldJobIsNeverLeftToBeReleased) {
  wait_in_queue();
  job.held_by_reservation_end = true;
  EXPECT_THAT(why().value_or(""), HasSubstr("held"));
}

TEST_F(Watch, ALiveJobThatLostItsReservationMustEnd) {
  job.reservation.clear();
  EXPECT_EQ(why(), "the job lost its reservation");
  job.reservation = "sun";
  EXPECT_EQ(why(), "the job is in reservation 'sun'");
}

TEST_F(Watch, AReservationThatChangedOrWentIsABreach) {
  reservations[0].users = {"bob"};
  EXPECT_THAT(why().value_or(""), HasSubstr("not what was granted"));
  reservations.clear();
  EXPECT_THAT(why().value_or(""), HasSubstr("not there any more"));
}

TEST_F(Watch, ANodeOutsideIsABreachAndBarsAPass) {
  job.nodes.emplace_back("gpu0009");
  EXPECT_THAT(why().value_or(""), HasSubstr("gpu0009"));
  job.state = JobState::completed;
  EXPECT_EQ(why(), std::nullopt) << "it has ended: nothing to cancel";
  ASSERT_TRUE(against_grant(grant, job));
  EXPECT_EQ(against_grant(grant, job)->failure_class, FailureClass::disagreement);
}

TEST_F(Watch, ARestartIsABreachAndBarsAPass) {
  job.restart_count = 1;
  EXPECT_THAT(why().value_or(""), HasSubstr("restarted"));
  job.state = JobState::completed;
  EXPECT_EQ(against_grant(grant, job)->failure_class, FailureClass::disagreement);
}

TEST_F(Watch, AStartBeforeTheReservationIsABreach) {
  job.start_time = start - 1s;
  EXPECT_THAT(why().value_or(""), HasSubstr("before the reservation"));
}

TEST_F(Watch, WaitingInAnActiveReservationIsBounded) {
  wait_in_queue();
  now = *job.submit_time + kPendingPatience;
  EXPECT_EQ(why(), std::nullopt);
  job.reason = "Reservation";
  now += 1us;
  EXPECT_THAT(why().value_or(""), HasSubstr("did not start within 10m 00s: Reservation"));
}

TEST_F(Watch, WaitingForTheStartIsNot) {
  wait_in_queue();
  job.submit_time = start - 5h;
  now = start - 1min;
  EXPECT_EQ(why(), std::nullopt);
}

TEST_F(Watch, TheEndOfTheReservationIsLeftToTheScheduler) {
  now = grant.reservation.end + 10s;
  reservations.clear();
  job.reservation.clear();
  EXPECT_EQ(why(), std::nullopt);
  wait_in_queue();
  now = grant.reservation.end;
  EXPECT_THAT(why().value_or(""), HasSubstr("ended while the job waited"));
}

TEST_F(Watch, ATimeoutAtTheReservationsEndIsInfrastructureAndAtTheLimitIsNot) {
  job.state = JobState::timeout;
  job.start_time = grant.reservation.end - 10min;
  job.end_time = grant.reservation.end + 18s;  // as late as Slurm was seen to be
  ASSERT_TRUE(against_grant(grant, job));
  EXPECT_EQ(against_grant(grant, job)->failure_class, FailureClass::infrastructure);
  job.time_limit = 10min;
  EXPECT_EQ(against_grant(grant, job), std::nullopt);
  job.time_limit = 30min;
  job.end_time = grant.reservation.end - 1min;
  EXPECT_EQ(against_grant(grant, job), std::nullopt);
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}

TEST(Claim, TheFirstOwnsAnAttemptForEver) {
  const test::TempFolder folder;
  ASSERT_TRUE(claim_attempt(folder.path(), "job 7"));
  const auto second = claim_attempt(folder.path(), "job 8");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::already_exists);
  EXPECT_THAT(second.error().message, HasSubstr("job 7"));
  EXPECT_THAT(names_in(folder.path()), ElementsAre("claim"));
}

TEST(Claim, WhoeverIsKilledOnTheWayHasClaimedNothingOrAllOfIt) {
  const test::TempFolder folder;
  const auto file = folder / "claim";
  test::kill_at_every_step({CLAIM_ONCE, folder.path().string(), "job 7"}, test::file_calls(),
                           [&](const std::string& point) {
                             if (fs::exists(file)) {
                               EXPECT_EQ(read_file(file).value(), "job 7") << point;
                             } else {
                               EXPECT_TRUE(claim_attempt(folder.path(), "job 8")) << point;
                             }
                             fs::remove(file);
                           });
}

}  // namespace
}  // namespace qualify::run
