#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "qualify/run/job_plan.hpp"
#include "qualify/run/qualification.hpp"
#include "qualify/run/sentinel.hpp"
#include "qualify/scheduler/fake.hpp"
#include "support/fake_clock.hpp"
#include "support/temp_folder.hpp"

namespace qualify::run {
namespace {

using namespace std::chrono_literals;
using scheduler::Answer;
using scheduler::FakeJob;
using scheduler::JobState;
using ::testing::HasSubstr;

/// Counts what it signs; refuses on demand, as a key on a token that was pulled out.
class TestSigner final : public ledger::Signer {
 public:
  explicit TestSigner(std::unique_ptr<ledger::Signer> key) : key_(std::move(key)) {}
  const ledger::PublicKey& public_key() const override { return key_->public_key(); }
  Result<std::string> sign(std::string_view message) const override {
    if (broken) return fail(Errc::io, "the key is gone");
    return key_->sign(message);
  }
  bool broken = false;

 private:
  std::unique_ptr<ledger::Signer> key_;
};

/// One gate of two runs on a scripted cluster; each job leaves metrics and a result as a real one.
class Engine : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(init_state(folder / "state"));
    state.emplace(open_state(folder / "state").value());
    signer.emplace(ledger::load_key(state->paths.signing_key()).value());

    std::ofstream(folder / "bundle.yaml")
        << "schema_version: 1\nname: b\nrecipe: debug\n"
           "launch: {argv: [/bin/true]}\narms: {det: {}, fast: {}}\n"
           "outputs: [{kind: metrics, path: metrics.jsonl}]\n";
    const auto spec = spec::read_bundle_spec(folder / "bundle.yaml");
    ASSERT_TRUE(spec) << spec.error().describe();
    const auto bundle = store::seal(*spec, state->bundles);
    ASSERT_TRUE(bundle) << bundle.error().describe();

    request.bundle = bundle->digest;
    request.gate.name = "repeat";
    request.gate.arm = "det";
    request.gate.required_metrics = {"lm loss"};
    request.gate.run_limit = 5min;
    scheduler::Reservation& reservation = request.grant.reservation;
    reservation.name = "night";
    reservation.start = clock.now() - 1min;
    reservation.end = clock.now() + 12h;
    reservation.flags = {"SPEC_NODES"};
    reservation.nodes = {"n1"};
    reservation.node_count = 1;
    request.grant.gate = "repeat";
    request.grant.scheduler = "fake";

    scheduler::FakeScript script;
    script.reservations = {reservation};
    scheduler::Node node;
    node.name = "n1";
    node.usable = true;
    script.nodes = {node};
    script.jobs = {FakeJob{}};
    cluster.emplace(std::move(script), clock,
                    [this](const auto& job_request, const auto& job) { leave(job_request, job); });
  }

  /// What the job writes when it ends.
  void leave(const scheduler::JobRequest& job_request, const scheduler::Job& job) {
    if (job.state != JobState::completed && job.state != JobState::failed) return;
    const auto plan = read_job_plan(job_request.plan_file).value();
    ASSERT_TRUE(make_folders(plan.folder / "output"));
    if (request.gate.kind == policy::GateKind::performance) {
      leave_step_times(plan);
    } else {
      leave_metrics(plan);
    }
    Sentinel sentinel;
    sentinel.nonce = plan.nonce;
    sentinel.bundle = plan.bundle;
    sentinel.nodes = job.nodes;
    if (job.state == JobState::failed) sentinel.failure = "exit code 3";
    sentinel.started = sentinel.ended = clock.now();
    const auto hashed = hash_file(plan.folder / "output" / "metrics.jsonl").value();
    sentinel.files = {{"output/metrics.jsonl", hashed.size, hashed.digest}};
    ASSERT_TRUE(write_file_atomic(plan.folder / kSentinelFile, to_json(sentinel).dump()));
  }

  void leave_metrics(const JobPlan& plan) {
    // float32 bits, so that equality is exact; the time tells the two runs apart.
    std::ofstream(plan.folder / "output" / "metrics.jsonl")
        << R"({"iteration": 1, "lm loss": "0x412930)" << (plan.run == "b" ? loss_of_b : "69")
        << R"(", "time": )" << clock.now().time_since_epoch().count() << "}\n";
  }

  /// Step times whose pairs lie around the 1% line, so that no look decides; every run its own.
  void leave_step_times(const JobPlan& plan) {
    std::ofstream out(plan.folder / "output" / "metrics.jsonl");
    const auto run = static_cast<double>(cluster->submissions());
    const bool deterministic = plan.arm == "det";
    const bool odd = plan.run.find("pair-1") == 0 || plan.run.find("pair-3") == 0;
    const double ratio = !deterministic ? 1 : odd ? 1.03 : 0.99;
    for (int step = 1; step <= 40; ++step) {
      out << R"({"iteration": )" << step << R"(, "iteration-time": )"
          << ratio * (1 + 1e-4 * ((step * 7 + static_cast<int>(run)) % 5) + 1e-6 * run) << "}\n";
    }
  }

  /// A gate with looks at 4 and 6 pairs: 10 runs of 7 minutes with their margin, then 4 more.
  void make_performance_gate() {
    request.gate.kind = policy::GateKind::performance;
    request.gate.deterministic_arm = "det";
    request.gate.nondeterministic_arm = "fast";
    request.gate.looks = {{4, 0.01}, {6, 0.04}};
    request.gate.pairs = 6;
    request.gate.required_metrics.clear();
  }
  void reservation_ends_in(Duration left) {
    request.grant.reservation.end = clock.now() + left;
    cluster->script().reservations = {request.grant.reservation};
  }

  Result<Outcome> go() {
    stop = Stop::none;
    const Ports ports{*cluster,
                      *signer,
                      clock,
                      [this] { return stop; },
                      [this](const journal::Event& event) {
                        if (on_event) on_event(event);
                      },
                      "/usr/bin/qualify",
                      {}};
    return qualify_gate(*state, request, ports);
  }
  void jobs(std::vector<FakeJob> wanted) { cluster->script().jobs = std::move(wanted); }
  static FakeJob ends_as(JobState end) {
    FakeJob job;
    job.end = end;
    return job;
  }
  static FakeJob answered(Answer answer) {
    FakeJob job;
    job.answer = answer;
    return job;
  }

  test::TempFolder folder;
  test::FakeClock clock;
  std::optional<State> state;
  std::optional<TestSigner> signer;
  std::optional<scheduler::Fake> cluster;
  Request request;
  Stop stop = Stop::none;
  std::function<void(const journal::Event&)> on_event;
  std::string loss_of_b = "69";
};

TEST_F(Engine, TwoEqualRunsGiveAPassWithACertificate) {
  const auto outcome = go();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass)
      << outcome->judgement.reasons.front();
  EXPECT_FALSE(outcome->certificate.empty());
  EXPECT_EQ(outcome->state.certificate, outcome->certificate);
  EXPECT_EQ(cluster->submissions(), 2U);
}

TEST_F(Engine, OneBitFailsAndNothingIsRetried) {
  loss_of_b = "6a";
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

}  // namespace
}  // namespace qualify::run
