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
