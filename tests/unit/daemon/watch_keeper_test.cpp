#include "keeper_fixture.hpp"

namespace qualify::daemon {
namespace {

TEST_F(Keeper, LaunchesWithinTwoSecondsOfTheStart) {
  arm_gate("scale");
  live_until(reservation.end);
  EXPECT_THAT(ran, ElementsAre("scale/a", "scale/b"));
  ASSERT_THAT(started, Not(IsEmpty()));
  EXPECT_GE(started.front(), reservation.start);
  EXPECT_LE(started.front() - reservation.start, 2s);
  EXPECT_THAT(armed_names(), IsEmpty());
  EXPECT_THAT(said, Contains(HasSubstr("gate scale is disarmed: it reached its verdict: pass")));
}

TEST_F(Keeper, StartsNothingThatIsNotArmed) {
  clock.set(reservation.start + 1min);
  ASSERT_TRUE(keeper->look());
  EXPECT_EQ(cluster->submissions(), 0U);
}

TEST_F(Keeper, WaitsForANodeThatMayComeBack) {
  arm_gate("scale");
  set_usable(false);
  clock.set(reservation.start);
  live_until(reservation.start + 10min);
  EXPECT_EQ(cluster->submissions(), 0U);
  ASSERT_THAT(armed_names(), ElementsAre("scale"));
  EXPECT_THAT(armed_gates(state->database).value()[0].waiting_for,
              Contains(HasSubstr("node n1 is drained")));
  const auto events = journal::Journal(state->database).general_events().value();
  EXPECT_THAT(events, SizeIs(2)) << "what is waited for is recorded once, not at every look";
  set_usable(true);
  live_until(reservation.end);
  EXPECT_THAT(ran, ElementsAre("scale/a", "scale/b"));
}

TEST_F(Keeper, GivesUpWhenTheReservationIsNotWhatWasGranted) {
  arm_gate("scale");
  cluster->script().reservations[0].users = {"somebody"};
  ASSERT_TRUE(keeper->look());
  EXPECT_THAT(armed_names(), IsEmpty());
  EXPECT_THAT(said, Contains(HasSubstr("the reservation is not what was granted: users")));
  EXPECT_EQ(cluster->submissions(), 0U);
}

TEST_F(Keeper, GivesUpWhenTheGrantIsRevoked) {
  arm_gate("scale");
  revoked = true;
  ASSERT_TRUE(keeper->look());
  EXPECT_THAT(armed_names(), IsEmpty());
  EXPECT_THAT(said, Contains(HasSubstr("its grant was revoked")));
}

TEST_F(Keeper, RunsGatesOfOneReservationInTheOrderOfArming) {
  arm_gate("second");
  arm_gate("first");
  live_until(reservation.end);
  EXPECT_THAT(ran, ElementsAre("second/a", "second/b", "first/a", "first/b"));
}

TEST_F(Keeper, GivesUpWhatDoesNotFitAnyMoreAndStartsTheRest) {
  scheduler::FakeJob job;
  job.duration = 80min;
  cluster->script().jobs = {job};
  arm_gate("long", 90min);   // two runs of 92 minutes with margins: fits 4 hours
  arm_gate("again", 90min);  // 80 minutes are left after it
  arm_gate("short", 30min);
  live_until(reservation.end);
  EXPECT_THAT(said, Contains(HasSubstr("gate again is disarmed: the plan needs 3h 04m")));
  EXPECT_THAT(ran, Not(Contains(HasSubstr("again"))));
  EXPECT_THAT(ran, Contains("long/b"));
  EXPECT_EQ(cluster->submissions(), 4U) << "two of long, two of short, none of again";
}

TEST_F(Keeper, AControllerThatIsDownCostsNothingButTime) {
  arm_gate("scale");
  cluster->script().outages = {{reservation.start - 1min, reservation.start + 20min}};
  clock.set(reservation.start);
  live_until(reservation.end);
  EXPECT_THAT(ran, ElementsAre("scale/a", "scale/b"));
}

TEST_F(Keeper, AStopLeavesTheJobAndTheNextKeeperGoesOnWithIt) {
  arm_gate("scale");
  clock.set(reservation.start);
  int asked = 0;
  WatchKeeper first(*state,
                    around([&] { return ++asked > 6 ? run::Stop::detach : run::Stop::none; }));
  const auto stopped = first.look();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Errc::interrupted);
  EXPECT_EQ(cluster->submissions(), 1U);
  ASSERT_TRUE(keeper->go_on());
  live_until(reservation.end);
  EXPECT_EQ(cluster->submissions(), 2U) << "the job that went on was started again";
  EXPECT_THAT(ran, ElementsAre("scale/a", "scale/b"));
}

TEST_F(Keeper, AGateIsArmedOnce) {
  arm_gate("scale");
  policy::Gate gate = armed_gates(state->database).value()[0].gate;
  const auto again = arm(state->database, armed_as(gate, "other"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::already_exists);
  ASSERT_TRUE(disarm(state->database, clock.now(), "scale", "me", "changed my mind"));
  EXPECT_EQ(disarm(state->database, clock.now(), "scale", "me", "").error().code, Errc::not_found);
  EXPECT_THAT(armed_names(), IsEmpty());
}

TEST_F(Keeper, AVerdictThatAKilledDaemonDidNotTellIsToldAndNotRunAgain) {
  arm_gate("scale");
  clock.set(reservation.start);
  const auto ran_by_it = run::qualify_gate(
      *state, {test::repeat_gate("scale"), bundle, *grant_of("scale").value()},
      {*cluster, *signer, clock, [] { return run::Stop::none; }, {}, "/usr/bin/qualify", {}});
  ASSERT_TRUE(ran_by_it) << ran_by_it.error().describe();
  // Killed here: the gate is armed still.
  live_until(reservation.end);
  EXPECT_THAT(armed_names(), IsEmpty());
  EXPECT_EQ(cluster->submissions(), 2U) << "a gate that had its verdict was run again";
}

TEST_F(Keeper, ADisarmWhileItIsLookedAtRecordsNothingMore) {
  arm_gate("scale");
  before_grant = [&] {
    ASSERT_TRUE(disarm(state->database, clock.now(), "scale", "me", "changed my mind"));
  };
  ASSERT_TRUE(keeper->look());
  EXPECT_THAT(armed_names(), IsEmpty());
  const auto events = journal::Journal(state->database).general_events().value();
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(events.back().kind, event::kDisarmed);
}

TEST_F(Keeper, AnArmingThatFollowsIsNotEndedWithTheOneBefore) {
  arm_gate("scale");
  revoked = true;
  before_grant = [&] {
    ASSERT_TRUE(disarm(state->database, clock.now(), "scale", "me", "another night"));
    ASSERT_TRUE(arm(state->database, armed_as(test::repeat_gate("scale"), "other")));
  };
  ASSERT_TRUE(keeper->look());
  const auto all = armed_gates(state->database).value();
  ASSERT_THAT(all, SizeIs(1)) << "the new arming was ended for a reason of the old one";
  EXPECT_EQ(all[0].reservation, "other");
}

TEST_F(Keeper, AVerdictOfWhatWasBegunBeforeTheArmingIsToldAndNotRunAgain) {
  clock.set(reservation.start);
  int asked = 0;
  const auto run_it = [&](const std::function<run::Stop()>& stopped) {
    return run::qualify_gate(*state,
                             {test::repeat_gate("scale"), bundle, *grant_of("scale").value()},
                             {*cluster, *signer, clock, stopped, {}, "/usr/bin/qualify", {}});
  };
  ASSERT_FALSE(run_it([&] { return ++asked > 6 ? run::Stop::detach : run::Stop::none; }));
  ASSERT_EQ(cluster->submissions(), 1U);
  arm_gate("scale");
  ASSERT_TRUE(run_it([] { return run::Stop::none; }));
  // Killed here: the gate is armed still.
  live_until(reservation.end);
  EXPECT_THAT(armed_names(), IsEmpty());
  EXPECT_THAT(said, Contains(HasSubstr("it reached its verdict: pass")));
  EXPECT_EQ(cluster->submissions(), 2U) << "a gate that had its verdict was run again";
}

/// A daemon that is killed in the middle of a gate, and another one that comes later.
class Killed : public Keeper {
 protected:
  /// Arms the gate and lives until so many attempts have ended.
  void die_after(std::size_t ended) {
    arm_gate("scale");
    clock.set(reservation.start);
    Surroundings dying = around([&] { return over ? run::Stop::detach : run::Stop::none; });
    dying.ports.on_event = [this, left = ended](const journal::Event& event) mutable {
      over = over || (event.kind == run::event::kEnded && --left == 0) ||
             (left == 0 && event.kind == run::event::kSubmitted);
    };
    const auto stopped = WatchKeeper(*state, std::move(dying)).look();
    ASSERT_FALSE(stopped);
    ASSERT_EQ(stopped.error().code, Errc::interrupted);
  }
  bool over = false;
};

TEST_F(Killed, WhatHasAllItsRunsIsJudgedThoughTheReservationIsOver) {
  die_after(2);
  ASSERT_EQ(cluster->submissions(), 2U);
  clock.set(reservation.end + 1h);
  cluster->script().reservations.clear();
  live_until(reservation.end + 2h);
  EXPECT_THAT(said, Contains(HasSubstr("it reached its verdict: pass")));
  EXPECT_THAT(armed_names(), IsEmpty());
  EXPECT_EQ(cluster->submissions(), 2U);
}

TEST_F(Killed, WhatStillLacksARunIsGivenUpWithItsReservation) {
  die_after(1);
  ASSERT_EQ(cluster->submissions(), 1U);
  clock.set(reservation.end + 1h);
  live_until(reservation.end + 2h);
  EXPECT_THAT(said, Contains(HasSubstr("gate scale is disarmed: the reservation ended")));
  EXPECT_EQ(cluster->submissions(), 1U);
}

TEST_F(Killed, ALiveJobIsFollowedToItsEndThoughTheGrantWasRevokedAndNoOtherIsStarted) {
  die_after(0);
  ASSERT_EQ(cluster->submissions(), 1U);
  revoked = true;
  live_until(reservation.end);
  EXPECT_THAT(ran, ElementsAre("scale/a"));
  EXPECT_EQ(cluster->submissions(), 1U) << "without a grant";
  EXPECT_THAT(said, Contains(HasSubstr("gate scale is disarmed: its grant was revoked")));
  const auto open = run::open_qualifications(state->database, "scale").value();
  ASSERT_THAT(open, SizeIs(1));
  EXPECT_TRUE(open[0].runs[0].attempts.back().complete);
}

TEST_F(Killed, WhatIsNotArmedIsFollowedToItsEndAsWell) {
  die_after(0);
  ASSERT_TRUE(disarm(state->database, clock.now(), "scale", "me", "no more"));
  revoked = true;
  ASSERT_TRUE(keeper->go_on());
  EXPECT_THAT(ran, ElementsAre("scale/a"));
  EXPECT_EQ(cluster->submissions(), 1U) << "without a grant";
}

TEST_F(Killed, ALiveJobOfAnotherPlanIsBroughtToItsVerdictFirst) {
  die_after(0);
  ASSERT_TRUE(disarm(state->database, clock.now(), "scale", "me", "other criteria"));
  arm_gate("scale", 6min);
  live_until(reservation.end);
  EXPECT_THAT(ran, ElementsAre("scale/a", "scale/b", "scale/a", "scale/b"));
  EXPECT_EQ(cluster->submissions(), 4U);
  EXPECT_THAT(said, Contains(HasSubstr("scale-1: pass")));
  EXPECT_THAT(said, Contains(HasSubstr("gate scale is disarmed: it reached its verdict: pass")));
}

}  // namespace
}  // namespace qualify::daemon
