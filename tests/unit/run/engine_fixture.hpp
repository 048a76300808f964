#pragma once

#include <gmock/gmock.h>

#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "qualify/base/files.hpp"
#include "qualify/run/job_plan.hpp"
#include "qualify/run/qualification.hpp"
#include "qualify/run/sentinel.hpp"
#include "qualify/scheduler/fake.hpp"
#include "support/engine.hpp"
#include "support/fake_clock.hpp"
#include "support/temp_folder.hpp"

namespace qualify::run {

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
    request.bundle = test::make_state(folder.path());
    state.emplace(open_state(folder / "state").value());
    signer.emplace(ledger::load_key(state->paths.signing_key()).value());
    request.gate = test::repeat_gate();
    request.grant = test::grant_of(test::night(clock.now() - 1min, clock.now() + 12h));
    cluster.emplace(test::cluster_of(request.grant.reservation), clock,
                    [this](const auto& job_request, const auto& job) {
                      if (hold_results) {
                        held.emplace_back(job_request, job);
                      } else {
                        leave(job_request, job);
                      }
                    });
  }

  /// What jobs wrote becomes visible, and so does what they write from now on.
  void release_results() {
    hold_results = false;
    for (const auto& [job_request, job] : std::exchange(held, {})) leave(job_request, job);
  }

  /// What the job writes when it ends: for the run that it is of, and those that share it.
  void leave(const scheduler::JobRequest& job_request, const scheduler::Job& job) {
    if (job.state != JobState::completed && job.state != JobState::failed) return;
    for (const JobPlan& plan : test::plans_of(job_request)) {
      const bool fails =
          job.state == JobState::failed && (failing_run.empty() || failing_run == plan.run);
      const bool timed = request.gate.kind == policy::GateKind::performance;
      test::write_result(plan, job, clock.now(), timed ? step_times(plan) : metrics(plan),
                         fails ? "exit code 3" : "");
      if (fails) break;
    }
  }

  /// float32 bits, so that equality is exact; the time tells the runs apart.
  std::string metrics(const JobPlan& plan) const {
    const std::int64_t first = plan.checkpoint.empty() ? 1 : plan.checkpoint_iteration + 1;
    const auto bits = last_bits.find(plan.run);
    std::ostringstream out;
    for (std::int64_t step = first; step <= steps; ++step) {
      out << R"({"iteration": )" << step << R"(, "lm loss": "0x412930)"
          << (bits == last_bits.end() ? "69" : bits->second) << R"(", "time": )"
          << clock.now().time_since_epoch().count() + std::hash<std::string>()(plan.run) % 1000
          << "}\n";
    }
    return out.str();
  }

  /// Step times whose pairs lie around the 1% line, so that no look decides; every run its own.
  std::string step_times(const JobPlan& plan) const {
    std::ostringstream out;
    const auto run = static_cast<double>(cluster->submissions());
    const bool deterministic = plan.arm == "det";
    const bool odd = plan.run.find("pair-1") == 0 || plan.run.find("pair-3") == 0;
    const double ratio = !deterministic ? 1 : odd ? 1.03 : 0.99;
    for (int step = 1; step <= 40; ++step) {
      out << R"({"iteration": )" << step << R"(, "iteration-time": )"
          << ratio * (1 + 1e-4 * ((step * 7 + static_cast<int>(run)) % 5) + 1e-6 * run) << "}\n";
    }
    return out.str();
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
  static scheduler::Node usable(const std::string& name) {
    scheduler::Node node;
    node.name = name;
    node.usable = true;
    return node;
  }
  /// A reservation of these nodes, all well; every run needs one.
  void reserve(const std::vector<std::string>& nodes) {
    request.grant.reservation.nodes = nodes;
    request.grant.reservation.node_count = static_cast<std::uint32_t>(nodes.size());
    cluster->script().reservations = {request.grant.reservation};
    cluster->script().nodes.clear();
    for (const std::string& node : nodes) cluster->script().nodes.push_back(usable(node));
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
                      [this] {
                        if (on_poll) on_poll();
                        return stop;
                      },
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
  std::function<void()> on_poll;                 ///< whenever the engine asks whether to stop
  std::map<std::string, std::string> last_bits;  ///< of a run's loss; "69" where not named
  std::int64_t steps = 1;
  bool hold_results = false;  ///< as a file system that does not show them yet
  std::vector<std::pair<scheduler::JobRequest, scheduler::Job>> held;
  std::string failing_run;  ///< of those that share a job that fails; empty = the first
};

}  // namespace qualify::run
