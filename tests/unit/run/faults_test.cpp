// What the world does to a run that is none of its business: each has a clear end, and the same
// command goes on from there.
#include <thread>

#include "engine_fixture.hpp"

namespace qualify::run {
namespace {

class Faults : public Engine {
 protected:
  /// A second program that writes, in the middle of a change for as long as it lives.
  struct OtherWriter {
    explicit OtherWriter(const fs::path& file) : database(journal::Database::open(file).value()) {
      if (!database.execute("BEGIN IMMEDIATE")) std::abort();
    }
    ~OtherWriter() { (void)database.execute("ROLLBACK"); }
    journal::Database database;
  };
  void at(const char* kind, std::function<void()> act) {
    on_event = [this, kind, act = std::move(act)](const journal::Event& event) {
      if (event.kind != kind) return;
      const auto once = act;
      on_event = nullptr;
      once();
    };
  }
  /// Of those whose results are held back.
  bool a_job_has_ended() const {
    return !held.empty() && scheduler::is_terminal(held.back().second.state);
  }
  void expect_pass_with(std::size_t submissions) {
    const auto outcome = go();
    ASSERT_TRUE(outcome) << outcome.error().describe();
    EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass)
        << outcome->judgement.reasons.front();
    EXPECT_EQ(cluster->submissions(), submissions);
  }
};

TEST_F(Faults, ADatabaseThatAnotherHoldsForLongEndsTheCommandAndNotTheRun) {
  journal::OpenOptions hasty;
  hasty.busy_timeout = std::chrono::milliseconds(1);
  hasty.transcript = state->paths.transcript();
  state->database = journal::Database::open(state->paths.database(), hasty).value();
  std::optional<OtherWriter> other;
  at(event::kSubmitted, [&] { other.emplace(state->paths.database()); });
  const auto stopped = go();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Errc::busy);
  EXPECT_THAT(stopped.error().describe(), HasSubstr("another qualify is writing"));
  other.reset();
  expect_pass_with(2);
}

TEST_F(Faults, ADatabaseThatAnotherHoldsForShortIsWaitedFor) {
  std::optional<OtherWriter> other;
  std::jthread release;
  at(event::kSubmitted, [&] {
    other.emplace(state->paths.database());
    release = std::jthread([&] { other.reset(); });
  });
  expect_pass_with(2);
}

TEST_F(Faults, AClockThatIsSetBackChangesNoOrderAndNoVerdict) {
  at(event::kSubmitted, [&] { clock.set(clock.now() - 1h); });
  expect_pass_with(2);
  const auto events = journal::Journal(state->database).events("repeat-1").value();
  for (std::size_t i = 1; i < events.size(); ++i) {
    EXPECT_LT(events[i - 1].sequence, events[i].sequence);
  }
  const auto derived = derive(events);
  ASSERT_TRUE(derived) << derived.error().describe();
  for (const Cost& cost : cost_by_arm({&*derived, 1})) {
    EXPECT_GE(cost.gpu_seconds, 0);
    EXPECT_GE(cost.node_seconds, 0);
  }
  const auto expected = expected_duration(state->database, derived->plan);
  ASSERT_TRUE(expected);
  ASSERT_TRUE(*expected);
  EXPECT_GE(**expected, Duration::zero());
}

TEST_F(Faults, AClockThatIsSetBackDoesNotMakePatienceEndless) {
  FakeJob waiting;
  waiting.wait = 1000h;
  jobs({waiting});
  int polls = 0;
  at(event::kSubmitted, [&] { clock.set(clock.now() - 1h); });
  on_poll = [&] {
    if (++polls > 100'000) stop = Stop::cancel;
  };
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::inconclusive);
  EXPECT_LT(polls, 100'000) << "it waited for ever";
}

TEST_F(Faults, AnAttemptsFolderThatSomebodyRemovesUnderItsJobIsADisagreement) {
  // Whatever the job writes goes nowhere.
  on_event = [this](const journal::Event& event) {
    if (event.kind == event::kEnded || event.kind == event::kEvidence) {
      fs::remove_all(state->paths.runs() / "repeat-1");
    }
  };
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::inconclusive);
  EXPECT_TRUE(outcome->certificate.empty());
}

TEST_F(Faults, AnotherPlanOfTheGateIsRefusedWhileAJobIsLive) {
  at(event::kSubmitted, [&] { stop = Stop::detach; });
  ASSERT_FALSE(go());
  request.gate.run_limit = 6min;
  const auto refused = go();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::refused);
  EXPECT_THAT(refused.error().describe(), HasSubstr("repeat-1"));
  EXPECT_THAT(refused.error().hint, HasSubstr("qualify resume repeat"));
  EXPECT_THAT(refused.error().hint, HasSubstr("qualify cancel repeat"));
  EXPECT_EQ(journal::Journal(state->database).qualifications("repeat").value().size(), 1U);
  EXPECT_EQ(cluster->submissions(), 1U);
  request.gate.run_limit = 5min;
  expect_pass_with(2);
}

TEST_F(Faults, AnotherPlanOfTheGateMayBeginOnceNoJobIsLive) {
  at(event::kEnded, [&] { stop = Stop::detach; });
  ASSERT_FALSE(go());
  request.gate.run_limit = 6min;
  expect_pass_with(3);
}

TEST_F(Faults, WithoutLeaveToSubmitTheLiveJobIsFollowedToItsEndAndNoOtherBegun) {
  at(event::kSubmitted, [&] { stop = Stop::detach; });
  ASSERT_FALSE(go());
  request.may_submit = false;
  const auto refused = go();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::refused);
  EXPECT_EQ(cluster->submissions(), 1U);
  request.may_submit = true;
  expect_pass_with(2);
}

TEST_F(Faults, ADetachWhileResultsAreNotVisibleYetRecordsNothing) {
  hold_results = true;
  on_poll = [&] {
    if (a_job_has_ended()) stop = Stop::detach;
  };
  const auto stopped = go();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Errc::interrupted);
  const auto left = derive(journal::Journal(state->database).events("repeat-1").value()).value();
  EXPECT_FALSE(left.runs[0].attempts.at(0).ended) << left.runs[0].attempts[0].failure;
  on_poll = {};
  release_results();
  expect_pass_with(2);
}

TEST_F(Faults, ACancelWhileResultsAreNotVisibleYetStillWaitsForThem) {
  hold_results = true;
  on_poll = [&, looks = 0]() mutable {
    if (!a_job_has_ended()) return;
    stop = Stop::cancel;
    if (++looks == 3) release_results();
  };
  const auto stopped = go();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Errc::interrupted);
  on_poll = {};
  release_results();
  const auto left = derive(journal::Journal(state->database).events("repeat-1").value()).value();
  EXPECT_TRUE(left.runs[0].attempts.at(0).complete) << left.runs[0].attempts[0].failure;
  expect_pass_with(2);
}

/// A controller that is restarted, and does not answer for some minutes.
class Restarted : public Faults {
 protected:
  void silent_for(Duration length) {
    cluster->script().outages = {{clock.now(), clock.now() + length}};
  }
};

TEST_F(Restarted, BeforeTheFirstSubmissionIsWaitedForAndSaid) {
  std::vector<std::string> faults;
  on_event = [&](const journal::Event& event) {
    if (event.kind == event::kPreflight) faults.push_back(event.payload);
  };
  silent_for(10min);
  expect_pass_with(2);
  ASSERT_FALSE(faults.empty());
  EXPECT_THAT(faults.front(), HasSubstr("the fake controller is down"));
  EXPECT_EQ(faults.size(), 3U) << "said once, then a clean look before each of two runs";
}

TEST_F(Restarted, BetweenTwoRunsIsWaitedFor) {
  at(event::kEnded, [&] { silent_for(10min); });
  expect_pass_with(2);
}

TEST_F(Restarted, BeforeAFurtherLookIsWaitedFor) {
  make_performance_gate();
  on_event = [this, collected = 0](const journal::Event& event) mutable {
    if (event.kind == event::kEvidence && ++collected == 10) silent_for(10min);
  };
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(cluster->submissions(), 14U);
}

TEST_F(Restarted, IsWaitedForNoLongerThanAllowedAndTheSameCommandGoesOn) {
  at(event::kEnded, [&] { silent_for(3h); });
  const Time start = clock.now();
  const auto ended = go();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Errc::unavailable);
  EXPECT_GE(clock.now() - start, Limits().silence);
  EXPECT_LE(clock.now() - start, Limits().silence + 5min);
  cluster->script().outages.clear();
  expect_pass_with(2);
}

TEST_F(Restarted, AStopEndsTheWaiting) {
  at(event::kEnded, [&] {
    silent_for(3h);
    on_poll = [&, polls = 0]() mutable {
      if (++polls > 5) stop = Stop::detach;
    };
  });
  const Time start = clock.now();
  const auto ended = go();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Errc::interrupted);
  EXPECT_LT(clock.now() - start, 10min);
}

TEST_F(Faults, AStopEndsTheCollectingOfEvidenceAndNothingIsRepeated) {
  int polls = 0;
  on_event = [&](const journal::Event& event) {
    if (event.kind != event::kEnded || event.run != "b") return;
    on_poll = [&] {
      ++polls;
      stop = Stop::detach;
    };
  };
  const auto stopped = go();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Errc::interrupted);
  EXPECT_THAT(stopped.error().describe(), HasSubstr("evidence"));
  EXPECT_EQ(polls, 1);
  on_poll = {};
  on_event = {};
  expect_pass_with(2);
}

TEST_F(Faults, WhileEvidenceIsCollectedAndJudgedTheEngineKeepsAskingWhetherToStop) {
  // A service manager takes that for a sign of life; of a large checkpoint it gets none else.
  std::map<std::string, int> polls;
  std::string doing = "running";
  on_poll = [&] { ++polls[doing]; };
  on_event = [&](const journal::Event& event) {
    if (event.kind == event::kEnded && event.run == "b") {
      const auto output = state->paths.runs() / "repeat-1" / "b" / "attempt-1" / "output";
      fs::create_directories(output / "checkpoints");
      for (const auto& file : {output / "checkpoints" / "step-1.pt", output / "other.bin"}) {
        std::ofstream(file) << std::string(8 << 20, 'x');
      }
      doing = "collecting";
    }
    if (event.kind == event::kEvidence) doing = event.run == "b" ? "judging" : "collecting";
    if (event.kind == event::kVerdict) doing = "done";
  };
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_GE(polls["collecting"], 16) << "once for each MiB";
  EXPECT_GE(polls["judging"], 2) << "once for each run";
}

/// An attempt without a job whose folder was claimed by somebody who left no name, as engines and
/// jobs of earlier releases did when they were killed in the middle of it.
class UnnamedClaim : public Faults {
 protected:
  void SetUp() override {
    Faults::SetUp();
    jobs({answered(Answer::lost_before), FakeJob{}});
    at(event::kUnanswered, [&] { stop = Stop::detach; });
    ASSERT_FALSE(go());
    fs::create_directories(claim.parent_path());
    std::ofstream(claim).flush();
    ASSERT_TRUE(fs::exists(claim));
  }
  const fs::path claim = folder / "state" / "runs" / "repeat-1" / "a" / "attempt-1" / "claim";
};

TEST_F(UnnamedClaim, IsNobodysWhereNoJobIsThere) {
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  EXPECT_EQ(outcome->state.runs[0].attempts.at(0).failure_class, FailureClass::cancelled);
  EXPECT_EQ(outcome->state.runs[0].attempts.size(), 2U);
}

TEST_F(UnnamedClaim, IsAJobsThatWritesItsNameMeanwhile) {
  on_poll = [&, polls = 0]() mutable {
    if (++polls == 3) std::ofstream(claim) << "job 1 on n1";
  };
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->state.runs[0].attempts.size(), 1U) << "a run that may be under way, doubled";
  EXPECT_THAT(outcome->state.runs[0].attempts[0].failure, HasSubstr("the job ran"));
}

TEST_F(Faults, TwoOperatorsAtOnceAreOneRunAndOneAnswer) {
  std::optional<Result<Outcome>> second;
  at(event::kRunning, [&] {
    auto own = open_state(folder / "state").value();
    const Ports ports{*cluster, *signer, clock, [] { return Stop::none; }, {}, "/q", {}};
    second = qualify_gate(own, request, ports);
  });
  expect_pass_with(2);
  ASSERT_TRUE(second);
  ASSERT_FALSE(*second);
  EXPECT_EQ(second->error().code, Errc::busy);
  EXPECT_THAT(second->error().describe(), HasSubstr("another qualify is running"));
}

}  // namespace
}  // namespace qualify::run
