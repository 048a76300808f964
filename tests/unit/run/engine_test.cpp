#include "engine_fixture.hpp"

namespace qualify::run {
namespace {

using ::testing::Not;

TEST_F(Engine, TwoEqualRunsGiveAPassWithACertificate) {
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass)
      << outcome->judgement.reasons.front();
  EXPECT_FALSE(outcome->certificate.empty());
  EXPECT_EQ(outcome->state.certificate, outcome->certificate);
  EXPECT_EQ(cluster->submissions(), 2U);
}

TEST_F(Engine, ABundleThatPassesWhatIsNotSetIsRefusedBeforeAnythingStarts) {
  std::ofstream(folder / "passes.yaml")
      << "schema_version: 1\nname: passes\nrecipe: debug\npassed_environment: [API_TOKEN]\n"
         "launch: {argv: [/bin/true]}\narms: {det: {}}\n"
         "outputs: [{kind: metrics, path: metrics.jsonl}]\n";
  request.bundle =
      store::seal(spec::read_bundle_spec(folder / "passes.yaml").value(), state->bundles)
          .value()
          .digest;
  const auto outcome = go();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::refused);
  EXPECT_THAT(outcome.error().describe(), HasSubstr("API_TOKEN"));
  EXPECT_EQ(cluster->submissions(), 0U);
}

TEST_F(Engine, OneBitFailsAndNothingIsRetried) {
  last_bits["b"] = "6a";
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::fail);
  EXPECT_THAT(outcome->judgement.reasons.front(),
              HasSubstr("lm loss first differs at iteration 1"));
  EXPECT_TRUE(outcome->certificate.empty());
  EXPECT_EQ(cluster->submissions(), 2U);
}

TEST_F(Engine, AWorkloadThatFailsIsInconclusiveAndNotRetried) {
  FakeJob failing = ends_as(JobState::failed);
  failing.exit_code = 1;
  jobs({failing, FakeJob{}});
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::inconclusive);
  EXPECT_THAT(outcome->judgement.reasons.front(), HasSubstr("exit code 3"));
  EXPECT_EQ(cluster->submissions(), 2U);
}

TEST_F(Engine, ANodeFailureIsRetriedAndBothAttemptsAreKept) {
  jobs({ends_as(JobState::node_fail), FakeJob{}});
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  ASSERT_EQ(outcome->state.runs[0].attempts.size(), 2U);
  EXPECT_EQ(outcome->state.runs[0].attempts[0].failure_class, FailureClass::infrastructure);
  EXPECT_EQ(cluster->submissions(), 3U);
}

TEST_F(Engine, NodeFailuresAreRetriedABoundedNumberOfTimes) {
  jobs({ends_as(JobState::node_fail)});
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::inconclusive);
  EXPECT_EQ(cluster->submissions(), 2U * kMaxAttempts);
}

TEST_F(Engine, AJobThatSomebodyElseCancelsIsNotStartedAgainUntilAskedTo) {
  jobs({ends_as(JobState::cancelled), FakeJob{}});
  const auto stopped = go();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Errc::interrupted);
  EXPECT_THAT(stopped.error().describe(), HasSubstr("cancelled"));
  EXPECT_EQ(cluster->submissions(), 1U);
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  EXPECT_EQ(outcome->state.runs[0].attempts.size(), 2U);
  EXPECT_EQ(cluster->submissions(), 3U);
}

TEST_F(Engine, AStopBetweenTwoRunsStartsNoFurtherJobAndIsGoneOnFrom) {
  on_event = [this](const journal::Event& event) {
    if (event.kind == event::kEnded) stop = Stop::cancel;
  };
  const auto stopped = go();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Errc::interrupted);
  EXPECT_EQ(cluster->submissions(), 1U);
  on_event = {};
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  EXPECT_EQ(cluster->submissions(), 2U) << "the run that had ended is not repeated";
}

TEST_F(Engine, ALostAnswerIsFoundByItsNonceAndNotSubmittedAgain) {
  jobs({answered(Answer::lost_after), FakeJob{}});
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  EXPECT_EQ(outcome->state.runs[0].attempts.size(), 1U);
  EXPECT_EQ(cluster->submissions(), 2U);
}

TEST_F(Engine, SubmitsThatNeverArriveAreTriedABoundedNumberOfTimes) {
  jobs({answered(Answer::lost_before)});
  // Without a bound this would go on for ever: end it, and say so.
  int intents = 0;
  on_event = [&](const journal::Event& event) {
    if (event.kind == event::kIntent && ++intents > 20) stop = Stop::cancel;
  };
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::inconclusive);
  EXPECT_EQ(intents, 2 * kMaxAttempts);
}

TEST_F(Engine, AVerdictAndItsCertificateAreRecordedTogetherOrNotAtAll) {
  signer->broken = true;
  const auto failed = go();
  ASSERT_FALSE(failed);
  const journal::Journal journal(state->database);
  const auto left = derive(journal.events("repeat-1").value());
  ASSERT_TRUE(left);
  EXPECT_FALSE(left->finished()) << "finished without the certificate that it earned";
  signer->broken = false;
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->state.name, "repeat-1");
  EXPECT_FALSE(outcome->certificate.empty());
  EXPECT_EQ(cluster->submissions(), 2U) << "nothing was run again";
}

TEST_F(Engine, FurtherPairsAreRunWhereALookDoesNotDecide) {
  make_performance_gate();
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::inconclusive);
  EXPECT_EQ(cluster->submissions(), 14U) << outcome->judgement.reasons.front();
  EXPECT_EQ(outcome->state.window_closed, "");
}

class StopAmongFurtherPairs : public Engine, public ::testing::WithParamInterface<const char*> {};

TEST_P(StopAmongFurtherPairs, IsGoneOnFromAndNothingOfTheirsIsJudgedEarly) {
  make_performance_gate();
  on_event = [&](const journal::Event& event) {
    if (event.kind == GetParam() && event.run == "pair-5-nondet") stop = Stop::detach;
  };
  const auto stopped = go();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Errc::interrupted);
  on_event = {};
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(cluster->submissions(), 14U) << outcome->judgement.reasons.front();
  for (const RunState& run : outcome->state.runs) {
    ASSERT_EQ(run.attempts.size(), 1U) << run.run.id;
    EXPECT_TRUE(run.attempts[0].complete) << run.run.id;
    EXPECT_TRUE(run.evidence) << run.run.id;
  }
}

INSTANTIATE_TEST_SUITE_P(Phases, StopAmongFurtherPairs,
                         ::testing::Values(event::kSubmitted, event::kEnded));

TEST_F(Engine, FurtherPairsAreNotBegunWhereTheWindowHasNoRoomForThem) {
  make_performance_gate();
  reservation_ends_in(71min);
  FakeJob job;
  job.duration = 290s;
  jobs({job});
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::inconclusive);
  EXPECT_EQ(cluster->submissions(), 10U);
  EXPECT_THAT(outcome->state.window_closed, HasSubstr("4 further runs need 28m 00s"));
  // A verdict was reached: the same command begins a new qualification, it does not go on.
  EXPECT_TRUE(outcome->state.finished());
}

TEST_F(Engine, NothingStartsWhereNotEvenTheFirstLookFits) {
  make_performance_gate();
  reservation_ends_in(69min);
  const auto outcome = go();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::refused);
  EXPECT_THAT(outcome.error().message, HasSubstr("the plan needs 1h 10m"));
  EXPECT_EQ(cluster->submissions(), 0U);
}

TEST_F(Engine, AJobThatIsCompletingIsWaitedFor) {
  FakeJob slow;
  slow.completing = 2min;
  jobs({slow, FakeJob{}});
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  EXPECT_THAT(outcome->state.runs[0].attempts[0].job, Not(HasSubstr("still completing")));
}

TEST_F(Engine, AJobThatNeverStopsCompletingIsJudgedByHowItsWorkEnded) {
  reserve({"n1", "n2"});  // the epilog on the first one's node hangs
  FakeJob stuck;
  stuck.completing = 1000h;
  jobs({stuck, FakeJob{}});
  const Time start = clock.now();
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass)
      << outcome->judgement.reasons.front();
  EXPECT_THAT(outcome->state.runs[0].attempts[0].job, HasSubstr("still completing after 10m 00s"));
  EXPECT_LT(clock.now() - start, 20min);
  EXPECT_EQ(cluster->submissions(), 2U);
}

TEST_F(Engine, AFailedJobThatNeverStopsCompletingIsAFailure) {
  FakeJob stuck = ends_as(JobState::failed);
  stuck.completing = 1000h;
  stuck.exit_code = 3;
  jobs({stuck});
  on_event = [this](const journal::Event& event) {
    if (event.kind == event::kEnded) stop = Stop::cancel;
  };
  ASSERT_FALSE(go());
  const auto left = derive(journal::Journal(state->database).events("repeat-1").value()).value();
  EXPECT_EQ(left.runs[0].attempts.at(0).failure_class, FailureClass::workload);
}

/// A scheduler that forgets a job as soon as it has ended.
class Forgotten : public Engine {
 protected:
  void SetUp() override {
    Engine::SetUp();
    cluster->script().remembered = 0s;
    on_event = [this](const journal::Event& event) {
      if (event.kind == event::kEnded) ends.push_back(parse_json(event.payload, "ended").value());
    };
  }
  /// Nobody can say how the jobs ended: never a pass, never a failure, never a second job.
  void expect_unknown(const std::string& why) {
    const auto outcome = go();
    ASSERT_TRUE(outcome) << outcome.error().describe();
    EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::inconclusive);
    ASSERT_EQ(ends.size(), 2U);
    for (const Json& end : ends) {
      EXPECT_EQ(end.at("failure_class"), "disagreement");
      EXPECT_THAT(end.at("failure").get<std::string>(), HasSubstr(why));
    }
    EXPECT_EQ(cluster->submissions(), 2U) << "one for each run of the plan";
  }
  std::vector<Json> ends;
};

TEST_F(Forgotten, JobsAreJudgedByAccountingsWord) {
  cluster->script().accounting_lag = 30s;
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  ASSERT_EQ(ends.size(), 2U);
  for (const Json& end : ends) {
    EXPECT_EQ(end.at("job").at("accounted"), true);
    EXPECT_EQ(end.at("job").at("state"), "completed");
  }
  EXPECT_EQ(cluster->submissions(), 2U);
}

TEST_F(Forgotten, AFailedJobIsAFailureByAccountingsWordToo) {
  cluster->script().accounting_lag = 0s;
  FakeJob job = ends_as(JobState::failed);
  job.exit_code = 3;
  jobs({job});
  ASSERT_TRUE(go());
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_EQ(ends[0].at("failure_class"), "workload");
  EXPECT_EQ(ends[0].at("job").at("exit_code"), 3);
}

TEST_F(Forgotten, WithoutAccountingNobodyKnows) {
  expect_unknown("accounting is not configured");
}

TEST_F(Forgotten, LaggingAccountingIsWaitedForNoLongerThanAllowed) {
  cluster->script().accounting_lag = 12h;
  expect_unknown("accounting does not know it yet");
}

TEST_F(Forgotten, AccountingThatHasNotHeardOfTheEndSaysNothing) {
  FakeJob job;
  job.duration = 600s;
  jobs({job});
  request.gate.run_limit = 30min;
  cluster->script().accounting_lag = 300s;
  expect_unknown("accounting still has it as running");
}

TEST_F(Forgotten, AccountingThatIsDownSaysNothing) {
  cluster->script().accounting_lag = 0s;
  cluster->script().accounting_outages = {{clock.now(), clock.now() + 12h}};
  expect_unknown("the fake accounting is down");
}

TEST_F(Forgotten, AccountingThatComesBackInTimeIsHeard) {
  cluster->script().accounting_lag = 0s;
  cluster->script().accounting_outages = {{clock.now(), clock.now() + 90s}};
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
}

TEST_F(Forgotten, AJobWhoseAnswerWasLostIsAdoptedFromAccounting) {
  FakeJob lost = answered(Answer::lost_after);
  lost.duration = 1s;
  jobs({lost, FakeJob{}});
  cluster->script().accounting_lag = 60s;
  const auto note = on_event;
  on_event = [&, unanswered = false](const journal::Event& event) mutable {
    note(event);
    if (event.kind != event::kUnanswered || std::exchange(unanswered, true)) return;
    clock.advance(5s);  // it ends and is forgotten before anybody looks
    const auto folder_of_a = state->paths.runs() / "repeat-1" / "a" / "attempt-1";
    ASSERT_TRUE(claim_attempt(folder_of_a, "job 1 on n1"));  // as every job does first
  };
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  EXPECT_EQ(cluster->submissions(), 2U);
}

}  // namespace
}  // namespace qualify::run
