#include "qualify/daemon/watch_keeper.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "qualify/run/job_plan.hpp"
#include "qualify/run/sentinel.hpp"
#include "qualify/scheduler/fake.hpp"
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
    ASSERT_TRUE(run::init_state(folder / "state"));
    state.emplace(run::open_state(folder / "state").value());
    signer = ledger::load_key(state->paths.signing_key()).value();
    std::ofstream(folder / "bundle.yaml") << "schema_version: 1\nname: b\nrecipe: debug\n"
                                             "launch: {argv: [/bin/true]}\narms: {det: {}}\n"
                                             "outputs: [{kind: metrics, path: metrics.jsonl}]\n";
    const auto spec = spec::read_bundle_spec(folder / "bundle.yaml");
    ASSERT_TRUE(spec) << spec.error().describe();
    const auto sealed = store::seal(*spec, state->bundles);
    ASSERT_TRUE(sealed) << sealed.error().describe();
    bundle = sealed->digest;

    reservation.name = "night";
    reservation.start = clock.now() + 1h;
    reservation.end = clock.now() + 5h;
    reservation.flags = {"SPEC_NODES"};
    reservation.nodes = {"n1"};
    reservation.node_count = 1;
    scheduler::FakeScript script;
    script.reservations = {reservation};
    scheduler::Node node;
    node.name = "n1";
    node.usable = true;
    script.nodes = {node};
    script.jobs = {scheduler::FakeJob{}};
    cluster.emplace(std::move(script), clock,
                    [this](const auto& request, const auto& job) { leave(request, job); });
    keeper.emplace(
        *state, Surroundings{
                    {*cluster, *signer, clock, [this] { return stop; }, {}, "/usr/bin/qualify", {}},
                    [this](const std::string& gate, const std::string&) { return grant_of(gate); },
                    [this](const std::string& line) { said.push_back(line); }});
  }

  Result<std::optional<scheduler::Grant>> grant_of(const std::string& gate) const {
    if (revoked) return std::optional<scheduler::Grant>();
    return std::optional(scheduler::Grant{gate, "fake", reservation, "op", Time()});
  }

  void leave(const scheduler::JobRequest& request, const scheduler::Job& job) {
    if (job.state == scheduler::JobState::running) started.push_back(clock.now());
    if (job.state != scheduler::JobState::completed) return;
    const auto plan = run::read_job_plan(request.plan_file).value();
    ran.push_back(plan.gate + "/" + plan.run);
    ASSERT_TRUE(make_folders(plan.folder / "output"));
    const auto file = plan.folder / "output" / "metrics.jsonl";
    std::ofstream(file) << R"({"iteration": 1, "lm loss": "0x41293069", "time": )"
                        << clock.now().time_since_epoch().count() << "}\n";
    run::Sentinel sentinel;
    sentinel.nonce = plan.nonce;
    sentinel.bundle = plan.bundle;
    sentinel.nodes = job.nodes;
    sentinel.started = sentinel.ended = clock.now();
    const auto hashed = hash_file(file).value();
    sentinel.files = {{"output/metrics.jsonl", hashed.size, hashed.digest}};
    ASSERT_TRUE(write_file_atomic(plan.folder / run::kSentinelFile, to_json(sentinel).dump()));
  }

  void arm_gate(const std::string& name, Duration run_limit = 5min) {
    policy::Gate gate;
    gate.name = name;
    gate.arm = "det";
    gate.required_metrics = {"lm loss"};
    gate.run_limit = run_limit;
    ASSERT_TRUE(arm(state->database, {gate, bundle, "night", "me", clock.now(), {}}));
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

  test::TempFolder folder;
  test::FakeClock clock;
  std::optional<run::State> state;
  std::unique_ptr<ledger::Signer> signer;
  Digest bundle;
  scheduler::Reservation reservation;
  std::optional<scheduler::Fake> cluster;
  std::optional<WatchKeeper> keeper;
  run::Stop stop = run::Stop::none;
  bool revoked = false;
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
  WatchKeeper first(
      *state,
      Surroundings{{*cluster,
                    *signer,
                    clock,
                    [&] { return ++asked > 6 ? run::Stop::detach : run::Stop::none; },
                    {},
                    "/usr/bin/qualify",
                    {}},
                   [this](const std::string& gate, const std::string&) { return grant_of(gate); },
                   [](const std::string&) {}});
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
  const auto again = arm(state->database, {gate, bundle, "other", "me", clock.now(), {}});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::already_exists);
  ASSERT_TRUE(disarm(state->database, clock.now(), "scale", "me", "changed my mind"));
  EXPECT_EQ(disarm(state->database, clock.now(), "scale", "me", "").error().code, Errc::not_found);
  EXPECT_THAT(armed_names(), IsEmpty());
}

}  // namespace
}  // namespace qualify::daemon
