#include "gate.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "qualify/store/bundle.hpp"
#include "support/git_repo.hpp"

namespace qualify::test {

void GateTest::SetUp() {
  ClusterTest::SetUp();
  if (HasFatalFailure()) return;
  ASSERT_TRUE(run::init_state(folder() / "state"));
  state_.emplace(run::open_state(folder() / "state").value());
  signer_ = ledger::load_key(state_->paths.signing_key()).value();
  const GitRepo repository(folder() / "code");
  fs::copy_file(RANK_PROGRAM, folder() / "code" / "rank_program");
  repository.commit();
  std::ofstream(folder() / "bundle.yaml")
      << "schema_version: 1\nname: ranks\nrecipe: debug\n"
         "code: {ranks: {repository: code}}\n"
         "environment: {NCCL_ALGO: Ring}\nrequired_environment: {NCCL_ALGO: Ring}\n"
         "topology: {nodes: "
      << nodes_of_a_run()
      << ", gpus_per_node: 8}\n"
         "launch: {tasks_per_node: 1, argv: ['{code.ranks}/rank_program', '{output}']}\n"
         "arms:\n  quick: {}\n  held: {arguments: [--wait, '"
      << (folder() / "released").string()
      << "']}\n  fails: {arguments: [--exit, '7']}\n  one_fails: {arguments: [--exit, '7', "
         "--exit-rank, '2']}\n"
         "outputs: [{kind: metrics, path: metrics}, {kind: trace, path: trace}]\n";
  const auto spec = spec::read_bundle_spec(folder() / "bundle.yaml");
  ASSERT_TRUE(spec) << spec.error().describe();
  const auto bundle = store::seal(*spec, state_->bundles);
  ASSERT_TRUE(bundle) << bundle.error().describe();
  request.bundle = bundle->digest;
  limits.settle = std::chrono::seconds(1);
  request.gate.name = "repeat";
  request.gate.arm = "quick";
  request.gate.required_metrics = {"lm loss"};
  request.gate.run_limit = std::chrono::minutes(5);
}

void GateTest::grant(const std::string& name) {
  request.grant.gate = "repeat";
  request.grant.scheduler = "slurm";
  request.grant.operator_name = "operator";
  request.grant.granted_at = clock.now();
  request.grant.reservation = reservation(name);
  note_grant(request.grant.reservation);
}

Result<run::Outcome> GateTest::run() {
  const run::Ports ports{slurm(),
                         *signer_,
                         clock,
                         [this] { return stop; },
                         [this](const journal::Event& event) {
                           events_.push_back(event);
                           std::cout << format_time(event.time).substr(11, 12) << " " << event.run
                                     << " " << event.kind << " " << event.payload.substr(0, 160)
                                     << std::endl;
                           const auto hook = hooks_.find(event.kind);
                           if (hook == hooks_.end()) return;
                           const auto what = std::move(hook->second);
                           hooks_.erase(hook);
                           what();
                         },
                         QUALIFY_PROGRAM,
                         cluster_environment(),
                         limits};
  return run::qualify_gate(*state_, request, ports);
}

void GateTest::after(const std::string& kind, int pauses, std::function<void()> what) {
  at(kind, [this, pauses, what = std::move(what)] {
    clock.on_sleep = [this, left = pauses, what]() mutable {
      if (--left > 0) return;
      const auto now = std::move(what);
      clock.on_sleep = {};
      now();
    };
  });
}

std::string GateTest::qualify_program() {
  return QUALIFY_PROGRAM;
}

void GateTest::release() {
  std::ofstream(folder() / "released") << "yes\n";
}

void GateTest::wait_until_training(const std::string& run) {
  const fs::path trace = attempt_folder(run) / "output" / "trace";
  wait_for([&] {
    std::error_code error;
    return std::distance(fs::directory_iterator(trace, error), fs::directory_iterator()) ==
           nodes_of_a_run();
  });
}

void GateTest::wait_until_saved(const std::string& file, const std::string& word) {
  wait_for([&] {
    const auto text = read_file(cluster_folder() / "state" / file);
    return text && text->find(word) != std::string::npos;
  });
}

void GateTest::note_taken_out(const std::string& job) {
  std::ofstream(cluster_folder() / "taken_out.txt", std::ios::app) << job << '\n';
}

void GateTest::stop_after(const std::string& kind) {
  at(kind, [this] { stop = run::Stop::detach; });
}

std::filesystem::path GateTest::attempt_folder(const std::string& run) const {
  return state_->paths.runs() / "repeat-1" / run / "attempt-1";
}

std::vector<Json> GateTest::events(const std::string& kind) const {
  std::vector<Json> payloads;
  for (const journal::Event& event : events_) {
    if (event.kind == kind) payloads.push_back(parse_json(event.payload, kind).value());
  }
  return payloads;
}

Time GateTest::time_of(const std::string& kind) const {
  for (const journal::Event& event : events_) {
    if (event.kind == kind) return event.time;
  }
  ADD_FAILURE() << "no event " << kind;
  return {};
}

std::vector<std::string> GateTest::fault_codes() const {
  std::vector<std::string> codes;
  const auto checks = events(run::event::kPreflight);
  if (checks.empty()) return codes;
  for (const Json& fault : checks.back().at("faults")) {
    codes.push_back(fault.at("code").get<std::string>());
  }
  return codes;
}

std::size_t GateTest::jobs_submitted() {
  const std::string log = controller_log();
  const std::string mark = "_slurm_rpc_submit_batch_job: JobId=";
  std::size_t count = 0;
  for (std::size_t at = log.find(mark); at != std::string::npos; at = log.find(mark, at + 1)) {
    ++count;
  }
  return count;
}

std::string GateTest::foreign_job(const std::vector<std::string>& options) {
  std::vector<std::string> argv = {"sbatch", "--parsable", "--job-name=foreign",
                                   "--output=/dev/null"};
  argv.insert(argv.end(), options.begin(), options.end());
  argv.insert(argv.end(), {"--wrap", "sleep 600"});
  const std::string printed = must(argv);
  return printed.substr(0, printed.find_first_of("\n;"));
}

bool GateTest::is_gone(const std::string& job) {
  return run_program({"scontrol", "show", "job", job}).code != 0;
}

}  // namespace qualify::test
