#include "qualify/daemon/watch_keeper.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "qualify/run/job_plan.hpp"
#include "support/engine.hpp"
#include "support/fake_clock.hpp"
#include "support/temp_folder.hpp"

namespace qualify::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

/// One node, one reservation that starts in an hour, and gates of two short runs.
class Keeper : public ::testing::Test {
 protected:
  void SetUp() override {
    bundle = test::make_state(folder.path());
    state.emplace(run::open_state(folder / "state").value());
    signer = ledger::load_key(state->paths.signing_key()).value();
    reservation = test::night(clock.now() + 1h, clock.now() + 5h);
    cluster.emplace(test::cluster_of(reservation), clock,
                    [this](const auto& request, const auto& job) { leave(request, job); });
    granted.push_back(reservation);
    keeper.emplace(*state, around([this] { return stop; }));
  }

  Surroundings around(std::function<run::Stop()> stopped) {
    return {{*cluster, *signer, clock, std::move(stopped), {}, "/usr/bin/qualify", {}},
            nullptr,
            [this](const std::string& gate, const std::string&) { return grant_of(gate); },
            [this](const run::QualificationState& one) { return grant_behind(one); },
            [this](const std::string& line) { said.push_back(line); },
            [this](const Armed& armed) { return judge(armed); }};
  }

  /// Of everything that was ever granted, the one that the plan rests on.
  Result<std::optional<scheduler::Grant>> grant_behind(const run::QualificationState& one) const {
    for (const scheduler::Reservation& each : granted) {
      if (scheduler::fingerprint(each) == one.plan.reservation_fingerprint) {
        return std::optional(test::grant_of(each, one.plan.gate));
      }
    }
    return std::optional<scheduler::Grant>();
  }

  Result<std::optional<scheduler::Grant>> grant_of(const std::string& gate) {
    if (const auto act = std::exchange(before_grant, {})) act();
    if (revoked) return std::optional<scheduler::Grant>();
    return std::optional(test::grant_of(reservation, gate));
  }

  void leave(const scheduler::JobRequest& request, const scheduler::Job& job) {
    if (job.state == scheduler::JobState::running) {
      started.push_back(clock.now());
      if (const auto act = std::exchange(at_start, {})) act();
    }
    if (job.state != scheduler::JobState::completed) return;
    const auto plan = run::read_job_plan(request.plan_file).value();
    ran.push_back(plan.gate + "/" + plan.run);
    test::leave_result(request, job, clock.now(), test::metrics_line(clock.now()));
  }

  Armed armed_as(const policy::Gate& gate, const std::string& on) const {
    Armed armed;
    armed.gate = gate;
    armed.bundle = bundle;
    armed.reservation = on;
    armed.by = "me";
    armed.since = clock.now();
    return armed;
  }
  void arm_gate(const std::string& name, Duration run_limit = 5min) {
    policy::Gate gate = test::repeat_gate(name);
    gate.run_limit = run_limit;
    ASSERT_TRUE(arm(state->database, armed_as(gate, "night")));
  }

  /// Looks as the daemon does, until nothing is armed or the time has come.
  void live_until(Time end) {
    while (clock.now() < end && !armed_gates(state->database).value().empty()) {
      const auto next = keeper->look();
      ASSERT_TRUE(next) << next.error().describe();
      clock.sleep_for(*next);
    }
  }
  std::vector<std::string> armed_names() {
    std::vector<std::string> names;
    const auto all = armed_gates(state->database).value();
    for (const Armed& one : all) names.push_back(one.gate.name);
    return names;
  }
  void set_usable(bool usable) {
    cluster->script().nodes[0].usable = usable;
    cluster->script().nodes[0].state = usable ? "IDLE" : "IDLE+DRAIN";
  }

  test::TempFolder folder{test::memory_folder()};
  test::FakeClock clock;
  std::optional<run::State> state;
  std::unique_ptr<ledger::Signer> signer;
  Digest bundle;
  scheduler::Reservation reservation;           ///< the one that is granted now
  std::vector<scheduler::Reservation> granted;  ///< and all that were
  std::optional<scheduler::Fake> cluster;
  std::optional<WatchKeeper> keeper;
  run::Stop stop = run::Stop::none;
  bool revoked = false;
  std::function<void()> at_start;      ///< what others do while the first job begins
  std::function<void()> before_grant;  ///< and when the keeper has read what is armed
  std::function<Result<std::string>(const Armed&)> judge;  ///< of gates that rest on others
  std::vector<std::string> said;
  std::vector<std::string> ran;
  std::vector<Time> started;
};

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

/// A gate that is due every day at 02:00; the clock begins at midnight.
class Recurrent : public Keeper {
 protected:
  void SetUp() override {
    Keeper::SetUp();
    reserve(clock.now() + 2h, 2h);
  }
  /// The reservation of this occurrence: the same name, another fingerprint, its own grant.
  void reserve(Time start, Duration length) {
    reservation = test::night(start, start + length);
    granted.push_back(reservation);
    cluster->script().reservations = {reservation};
  }
  void arm_daily(const std::string& name, const std::string& on = "night") {
    Armed armed = armed_as(test::repeat_gate(name), on);
    armed.schedule = "daily 02:00";
    armed.time_zone = "UTC";
    ASSERT_TRUE(arm(state->database, armed));
  }
  /// Looks as the daemon does until then; less often where no occurrence is near.
  void live(Time end) {
    while (clock.now() < end) {
      const auto next = keeper->look();
      ASSERT_TRUE(next) << next.error().describe();
      const Duration of_day = (clock.now() - midnight) % 24h;
      const bool near = of_day > 1h + 50min && of_day < 2h + 10min;
      clock.sleep_for(std::max<Duration>(*next, near ? 1s : 5min));
    }
  }
  std::vector<std::string> events(const std::string& kind) {
    std::vector<std::string> found;
    const auto all = journal::Journal(state->database).general_events().value();
    for (const journal::Event& event : all) {
      if (event.kind == kind) found.push_back(event.payload);
    }
    return found;
  }
  Armed only() { return armed_gates(state->database).value().at(0); }

  const Time midnight = clock.now();
};

TEST_F(Recurrent, RunsAtEachOccurrenceAndStaysArmed) {
  arm_daily("nightly");
  live(midnight + 3h);
  EXPECT_THAT(ran, ElementsAre("nightly/a", "nightly/b"));
  EXPECT_THAT(armed_names(), ElementsAre("nightly"));
  reserve(midnight + 26h, 2h);
  live(midnight + 27h);
  EXPECT_THAT(ran, SizeIs(4));
  EXPECT_THAT(events(event::kDue), SizeIs(2));
  EXPECT_THAT(events(event::kDone), SizeIs(2));
  EXPECT_THAT(events(event::kMissed), IsEmpty());
  EXPECT_GE(started.front(), midnight + 2h);
  EXPECT_LE(started.front(), midnight + 2h + 30s);
}

TEST_F(Recurrent, AGateThatRestsOnOthersIsJudgedAtEachOccurrence) {
  policy::Gate gate;
  gate.name = "matrix";
  gate.kind = policy::GateKind::coverage;
  gate.max_age = 192h;
  gate.coverage = {{"toy", "repeat", "cost"}};
  Armed armed = armed_as(gate, "");
  armed.bundle = Digest();
  armed.file = "/gates/qualification.yaml";
  armed.schedule = "daily 02:00";
  armed.time_zone = "UTC";
  ASSERT_TRUE(arm(state->database, armed));
  EXPECT_EQ(only().file, armed.file);
  std::vector<std::string> judged;
  Result<std::string> answer = std::string("pass");
  judge = [&](const Armed& one) {
    judged.push_back(one.gate.name + " by " + one.file);
    return answer;
  };
  live(midnight + 3h);
  EXPECT_THAT(judged, ElementsAre("matrix by /gates/qualification.yaml"));
  EXPECT_THAT(events(event::kDone), ElementsAre(HasSubstr("it was judged: pass")));
  EXPECT_THAT(armed_names(), ElementsAre("matrix"));
  answer = fail(Errc::refused, "its criteria were changed since it was armed");
  live(midnight + 27h);
  EXPECT_THAT(judged, SizeIs(2));
  EXPECT_THAT(only().missed->why, HasSubstr("criteria were changed"));
  EXPECT_EQ(cluster->submissions(), 0U);
}

TEST_F(Recurrent, StartsNothingBeforeItIsDue) {
  reserve(midnight, 6h);
  arm_daily("nightly");
  live(midnight + 1h + 59min);
  EXPECT_EQ(cluster->submissions(), 0U);
}

TEST_F(Recurrent, AnOccurrenceWithoutAGrantIsMissedOnceAndTheNextIsNot) {
  arm_daily("nightly");
  revoked = true;
  live(midnight + 12h);
  EXPECT_EQ(cluster->submissions(), 0U);
  ASSERT_THAT(events(event::kMissed), SizeIs(1));
  EXPECT_THAT(only().missed->why, HasSubstr("reservation 'night' is not granted"));
  EXPECT_EQ(std::count_if(
                said.begin(), said.end(),
                [](const std::string& line) { return line.find("missed") != std::string::npos; }),
            1);
  revoked = false;
  reserve(midnight + 26h, 2h);
  live(midnight + 27h);
  EXPECT_THAT(ran, SizeIs(2));
}

TEST_F(Recurrent, AGrantOfAnotherWeeksReservationDoesNotDo) {
  arm_daily("nightly");
  // The cluster has a reservation of this name; what was granted is the one of the night before.
  const scheduler::Reservation old = test::night(midnight - 22h, midnight - 20h);
  cluster->script().reservations = {reservation};
  reservation = old;
  live(midnight + 3h);
  EXPECT_EQ(cluster->submissions(), 0U);
  EXPECT_THAT(only().missed->why, HasSubstr("not what was granted"));
}

TEST_F(Recurrent, WhatWasDueWhileNoDaemonRanIsOneRecordAndNotMadeUpFor) {
  arm_daily("nightly");
  clock.set(midnight + 24h * 30 + 12h);
  reserve(clock.now(), 1h);
  keeper.emplace(*state, around([this] { return stop; }));
  live(clock.now() + 2h);
  EXPECT_EQ(cluster->submissions(), 0U);
  ASSERT_THAT(events(event::kMissed), SizeIs(1));
  EXPECT_EQ(only().missed->count, 31);
  EXPECT_EQ(only().missed->why, "the daemon was not running");
}

TEST_F(Recurrent, ALittleLateIsNotMissed) {
  arm_daily("nightly");
  clock.set(midnight + 2h + 9min);
  live(midnight + 3h);
  EXPECT_THAT(ran, SizeIs(2));
}

TEST_F(Recurrent, WhatIsDueWhileTheOneBeforeRunsIsMissed) {
  scheduler::FakeJob job;
  job.duration = 20h;
  cluster->script().jobs = {job};
  reserve(midnight + 2h, 100h);
  Armed armed = armed_as(test::repeat_gate("nightly"), "night");
  armed.gate.run_limit = 21h;
  armed.schedule = "daily 02:00";
  armed.time_zone = "UTC";
  ASSERT_TRUE(arm(state->database, armed));
  live(midnight + 48h);
  EXPECT_EQ(cluster->submissions(), 2U);
  EXPECT_THAT(events(event::kDue), SizeIs(1));
  ASSERT_THAT(events(event::kMissed), SizeIs(1));
  EXPECT_EQ(only().missed->why, "the one before was still running");
}

TEST_F(Recurrent, WhatStillWaitsWhenTheNextIsDueIsMissed) {
  set_usable(false);
  reserve(midnight + 2h, 100h);
  arm_daily("nightly");
  live(midnight + 27h);
  EXPECT_EQ(cluster->submissions(), 0U);
  ASSERT_THAT(events(event::kMissed), SizeIs(1));
  EXPECT_THAT(only().missed->why, HasSubstr("still waited when the next was due"));
  ASSERT_TRUE(only().due);
  EXPECT_EQ(*only().due, midnight + 26h);
  set_usable(true);
  live(midnight + 28h);
  EXPECT_THAT(ran, SizeIs(2));
}

TEST_F(Recurrent, AKilledDaemonsOccurrenceIsGoneOnWithAndNotRunTwice) {
  arm_daily("nightly");
  clock.set(midnight + 2h);
  int asked = 0;
  WatchKeeper first(*state,
                    around([&] { return ++asked > 6 ? run::Stop::detach : run::Stop::none; }));
  ASSERT_FALSE(first.look());
  EXPECT_EQ(cluster->submissions(), 1U);
  ASSERT_TRUE(only().due);
  live(midnight + 4h);
  EXPECT_EQ(cluster->submissions(), 2U);
  EXPECT_THAT(events(event::kDue), SizeIs(1));
  EXPECT_THAT(events(event::kDone), SizeIs(1));
}

TEST_F(Recurrent, ThisMachineNeedsNoReservation) {
  scheduler::Reservation machine = test::night(midnight - 24h, midnight + 24h * 365);
  machine.name = "local";
  scheduler::Fake local(test::cluster_of(machine), clock,
                        [this](const auto& request, const auto& job) { leave(request, job); });
  Surroundings here = around([this] { return stop; });
  here.local = &local;
  here.grant = [&](const std::string& gate,
                   const std::string& name) -> Result<std::optional<scheduler::Grant>> {
    EXPECT_EQ(name, "local");
    return std::optional(test::grant_of(machine, gate));
  };
  keeper.emplace(*state, std::move(here));
  arm_daily("nightly", "local");
  live(midnight + 27h);
  EXPECT_THAT(ran, SizeIs(4));
  EXPECT_EQ(local.submissions(), 4U);
  EXPECT_EQ(cluster->submissions(), 0U);
}

TEST_F(Recurrent, ADisarmWhileItRunsEndsTheArmingAndNotTheJournal) {
  arm_daily("nightly");
  at_start = [&] { ASSERT_TRUE(disarm(state->database, clock.now(), "nightly", "me", "no more")); };
  live(midnight + 3h);
  EXPECT_THAT(ran, SizeIs(2)) << "what had begun was not brought to its verdict";
  EXPECT_THAT(armed_names(), IsEmpty());
  EXPECT_THAT(events(event::kDone), IsEmpty());
  arm_daily("nightly");
  EXPECT_THAT(armed_names(), ElementsAre("nightly"));
}

TEST_F(Recurrent, AnArmingWhileTheOldOneRunsIsAnotherOne) {
  arm_daily("nightly");
  at_start = [&] {
    ASSERT_TRUE(disarm(state->database, clock.now(), "nightly", "me", "anew"));
    arm_daily("nightly");
  };
  live(midnight + 3h);
  EXPECT_THAT(armed_names(), ElementsAre("nightly"));
  EXPECT_THAT(events(event::kDone), IsEmpty()) << "the old one's occurrence ended the new one's";
  reserve(midnight + 26h, 2h);
  live(midnight + 27h);
  EXPECT_THAT(events(event::kDone), SizeIs(1));
}

TEST_F(Recurrent, AJournalWithALateEventOfADisarmedGateIsReadAllTheSame) {
  arm_daily("nightly");
  ASSERT_TRUE(disarm(state->database, clock.now(), "nightly", "me", "no more"));
  // As releases wrote that did not look whether it was still armed.
  journal::Journal journal(state->database);
  const std::string at = format_time(midnight + 2h);
  const auto late = [&](const char* kind, Json payload) {
    payload["gate"] = "nightly";
    ASSERT_TRUE(journal.append(clock.now(), {}, {}, 0, kind, payload));
  };
  const auto all_late = [&] {
    late(event::kWaiting, {{"faults", {"its start"}}});
    late(event::kDone, {{"occurrence", at}, {"outcome", "it reached its verdict: pass"}});
    late(event::kMissed, {{"first", at}, {"last", at}, {"count", 1}, {"why", "no grant"}});
    late(event::kDisarmed, {{"by", "the daemon"}, {"why", "its grant was revoked"}});
  };
  all_late();
  late(event::kDue, {{"occurrence", at}});
  EXPECT_THAT(armed_names(), IsEmpty());
  arm_daily("nightly");
  late(event::kDone, {{"occurrence", at}, {"outcome", "it reached its verdict: pass"}});
  EXPECT_THAT(armed_names(), ElementsAre("nightly"));
  EXPECT_EQ(only().ended, only().since) << "it came to an end that was not its own";
}

TEST_F(Recurrent, AClockThatIsSetBackRunsNothingTwice) {
  arm_daily("nightly");
  live(midnight + 3h);
  EXPECT_THAT(ran, SizeIs(2));
  clock.set(midnight + 1h);
  reserve(midnight, 6h);
  live(midnight + 4h);
  EXPECT_THAT(ran, SizeIs(2)) << "02:00 came again on the clock, and was run again";
}

}  // namespace
}  // namespace qualify::daemon
