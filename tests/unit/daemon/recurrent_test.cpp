// Gates with a schedule.
#include "keeper_fixture.hpp"

namespace qualify::daemon {
namespace {

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
