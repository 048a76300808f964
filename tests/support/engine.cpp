#include "support/engine.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "qualify/base/files.hpp"
#include "qualify/run/job_plan.hpp"
#include "qualify/run/sentinel.hpp"
#include "qualify/run/state.hpp"
#include "qualify/store/bundle.hpp"

namespace qualify::test {

using namespace std::chrono_literals;

namespace {

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().describe());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace

Digest make_state(const fs::path& folder) {
  must(run::init_state(folder / "state"));
  auto state = must(run::open_state(folder / "state"));
  std::ofstream(folder / "bundle.yaml")
      << "schema_version: 1\nname: b\nrecipe: debug\n"
         "launch: {argv: [/bin/true]}\n"
         "arms: {det: {}, fast: {}, again: {arguments: ['{checkpoint}']},\n"
         "       wrong: {arguments: ['{checkpoint}', --wrong]}}\n"
         "outputs:\n"
         "  - {kind: metrics, path: metrics.jsonl}\n"
         "  - {kind: checkpoint, path: checkpoints, required: false}\n"
         "  - {kind: trace, path: traces, required: false}\n";
  return must(store::seal(must(spec::read_bundle_spec(folder / "bundle.yaml")), state.bundles))
      .digest;
}

policy::Gate repeat_gate(const std::string& name) {
  policy::Gate gate;
  gate.name = name;
  gate.arm = "det";
  gate.required_metrics = {"lm loss"};
  gate.run_limit = 5min;
  return gate;
}

scheduler::Reservation night(Time start, Time end) {
  scheduler::Reservation reservation;
  reservation.name = "night";
  reservation.start = start;
  reservation.end = end;
  reservation.flags = {"SPEC_NODES"};
  reservation.nodes = {"n1"};
  reservation.node_count = 1;
  return reservation;
}

scheduler::FakeScript cluster_of(const scheduler::Reservation& reservation) {
  scheduler::FakeScript script;
  script.reservations = {reservation};
  scheduler::Node node;
  node.name = "n1";
  node.usable = true;
  script.nodes = {node};
  script.jobs = {scheduler::FakeJob{}};
  return script;
}

scheduler::Grant grant_of(const scheduler::Reservation& reservation, const std::string& gate) {
  return {gate, "fake", reservation, "op", Time()};
}

std::string metrics_line(Time time, const std::string& last_byte) {
  return R"({"iteration": 1, "lm loss": "0x412930)" + last_byte + R"(", "time": )" +
         std::to_string(time.time_since_epoch().count()) + "}\n";
}

std::vector<run::JobPlan> plans_of(const scheduler::JobRequest& request) {
  std::vector<run::JobPlan> plans{must(run::read_job_plan(request.plan_file))};
  const auto further = plans.front().further;
  for (const auto& file : further) plans.push_back(must(run::read_job_plan(file)));
  return plans;
}

void write_result(const run::JobPlan& plan, const scheduler::Job& job, Time now,
                  const std::string& metrics, const std::string& failure) {
  if (fs::exists(plan.folder / run::kSentinelFile)) return;
  must(make_folders(plan.folder / "output"));
  const auto file = plan.folder / "output" / "metrics.jsonl";
  std::ofstream(file) << metrics;
  run::Sentinel sentinel;
  sentinel.nonce = plan.nonce;
  sentinel.bundle = plan.bundle;
  sentinel.nodes = job.nodes;
  sentinel.failure = failure;
  if (!failure.empty()) sentinel.stage = "train";
  sentinel.started = sentinel.ended = now;
  const auto hashed = must(hash_file(file));
  sentinel.files = {{"output/metrics.jsonl", hashed.size, hashed.digest}};
  must(write_file_atomic(plan.folder / run::kSentinelFile, to_json(sentinel).dump()));
}

void leave_result(const scheduler::JobRequest& request, const scheduler::Job& job, Time now,
                  const std::string& metrics) {
  const bool failed = job.state == scheduler::JobState::failed;
  if (job.state != scheduler::JobState::completed && !failed) return;
  for (const run::JobPlan& plan : plans_of(request)) {
    write_result(plan, job, now, metrics, failed ? "exit code 3" : "");
    if (failed) return;
  }
}

}  // namespace qualify::test
