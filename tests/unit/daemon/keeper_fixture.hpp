#pragma once

#include "qualify/daemon/watch_keeper.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "qualify/run/job_plan.hpp"
#include "support/engine.hpp"
#include "support/fake_clock.hpp"
#include "support/temp_folder.hpp"

namespace qualify::daemon {

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

}  // namespace qualify::daemon
