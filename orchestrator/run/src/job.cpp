#include "qualify/run/job.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "qualify/base/process.hpp"
#include "qualify/run/launch.hpp"
#include "qualify/run/watch.hpp"

namespace qualify::run {

namespace {

using Environment = std::map<std::string, std::string>;

std::string variable(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

/// Bytes that are no text would make the record unreadable: such a value is kept as hex.
Environment printable(Environment environment) {
  for (auto& [name, value] : environment) {
    if (!canonical_json(Json(value))) {
      value = "hex:" +
              to_hex(std::span(reinterpret_cast<const std::uint8_t*>(value.data()), value.size()));
    }
  }
  return environment;
}

/// Starts the tasks of this node, each told its rank as torchrun does, and waits for all of them.
/// The first failure is the result; the others are then killed, for they wait for the one that
/// died.
Result<ExitStatus> run_local_tasks(const JobPlan& plan, ProcessRequest process) {
  // What a task forks away becomes ours, and is ended with it.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::vector<pid_t> tasks;
  const Environment common = process.environment;
  for (std::uint32_t rank = 0; rank < plan.tasks_per_node; ++rank) {
    process.environment = common;
    process.environment["RANK"] = std::to_string(rank);
    process.environment["LOCAL_RANK"] = std::to_string(rank);
    process.environment["WORLD_SIZE"] = std::to_string(plan.tasks_per_node);
    const auto pid = spawn(process);
    if (!pid) {
      (void)kill_all_children();
      return tl::unexpected(pid.error());
    }
    tasks.push_back(*pid);
  }
  ExitStatus first;
  std::size_t running = tasks.size();
  while (running > 0) {
    const auto ended = wait_for_any();
    if (!ended) return tl::unexpected(ended.error());
    if (std::find(tasks.begin(), tasks.end(), ended->pid) == tasks.end()) continue;
    --running;
    if (!ended->status.success()) {
      first = ended->status;
      break;
    }
  }
  (void)kill_all_children();
  return first;
}

/// The same through srun, which spreads the tasks over the allocation's nodes.
Result<ExitStatus> run_slurm_tasks(const JobPlan& plan, ProcessRequest process) {
  std::vector<std::string> argv = {"srun", "--nodes=" + std::to_string(plan.nodes),
                                   "--ntasks=" + std::to_string(plan.nodes * plan.tasks_per_node),
                                   "--ntasks-per-node=" + std::to_string(plan.tasks_per_node),
                                   "--kill-on-bad-exit=1"};
  if (plan.gpus_per_node > 0) {
    argv.push_back("--gpus-per-node=" + std::to_string(plan.gpus_per_node));
  }
  argv.emplace_back("--");
  argv.insert(argv.end(), process.argv.begin(), process.argv.end());
  process.argv = std::move(argv);
  const auto pid = spawn(process);
  if (!pid) return tl::unexpected(pid.error());
  return wait_for(*pid);
}

/// Every regular file below `folder`/`part`, hashed; links are not followed.
Result<void> hash_outputs(const fs::path& folder, const std::string& part,
                          std::vector<OutputFile>& files) {
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder / part, error), end; !error && it != end;
       it.increment(error)) {
    if (!it->is_regular_file() || it->is_symlink()) continue;
    const auto hashed = hash_file(it->path());
    if (!hashed) return tl::unexpected(hashed.error());
    files.push_back({fs::relative(it->path(), folder).string(), hashed->size, hashed->digest});
  }
  if (error) return fail_errno(error.value(), "cannot list", (folder / part).string());
  return {};
}

Result<ExitStatus> run_workload(const JobPlan& plan, const JobContext& context,
                                Sentinel& sentinel) {
  const auto store = store::BlobStore::open_read_only(plan.store);
  if (!store) return tl::unexpected(store.error());
  const auto bundle = store::load(*store, plan.bundle);
  if (!bundle) return tl::unexpected(bundle.error());
  const JobLayout layout{plan.folder / "bundle", plan.folder / "output"};
  // Every blob is verified while it is laid out: what runs below is what was sealed.
  if (auto laid = store::materialize(*store, *bundle, layout.bundle); !laid) {
    return tl::unexpected(laid.error());
  }
  sentinel.bundle = plan.bundle;
  const spec::Arm* arm = bundle->arm(plan.arm);
  if (arm == nullptr) {
    return fail(Errc::invalid_input, "the bundle has no arm '" + plan.arm + "'");
  }
  auto argv = workload_argv(*bundle, *arm, plan, layout);
  if (!argv) return tl::unexpected(argv.error());
  auto environment = workload_environment(*bundle, *arm, plan, layout, context.environment);
  if (!environment) return tl::unexpected(environment.error());
  sentinel.argv = *argv;
  sentinel.environment = printable(recorded_environment(*bundle, *environment));
  for (const fs::path& made : {layout.output, plan.folder / "logs"}) {
    if (auto done = make_folders(made); !done) return tl::unexpected(done.error());
  }

  ProcessRequest process;
  process.argv = std::move(*argv);
  process.environment = std::move(*environment);
  process.folder = layout.output;
  process.stdout_file = plan.folder / "logs" / "stdout.log";
  process.stderr_file = plan.folder / "logs" / "stderr.log";
  process.dies_with_parent = true;
  return plan.scheduler == "slurm" ? run_slurm_tasks(plan, std::move(process))
                                   : run_local_tasks(plan, std::move(process));
}

}  // namespace

Result<Sentinel> run_job(const std::filesystem::path& plan_file, const JobContext& context,
                         Clock& clock) {
  const auto plan = read_job_plan(plan_file);
  if (!plan) return tl::unexpected(plan.error());
  // Whoever comes second (a job started again elsewhere, one that was given up on) does nothing.
  const std::string job_id = variable(context.environment, "SLURM_JOB_ID");
  if (auto claimed = claim_attempt(
          plan->folder, "job " + (job_id.empty() ? plan->nonce : job_id) + " on " + context.host);
      !claimed) {
    return tl::unexpected(claimed.error());
  }

  Sentinel sentinel;
  sentinel.nonce = plan->nonce;
  sentinel.host = context.host;
  sentinel.nodes = {context.host};
  const std::string restarts = variable(context.environment, "SLURM_RESTART_COUNT");
  std::from_chars(restarts.data(), restarts.data() + restarts.size(), sentinel.restart_count);
  sentinel.started = clock.now();

  Result<void> outcome;
  if (const auto status = run_workload(*plan, context, sentinel); status) {
    sentinel.exit_code = status->code;
    sentinel.signal = status->signal;
    if (!status->success()) sentinel.failure = status->describe();
  } else {
    sentinel.exit_code = -1;
    sentinel.failure = "the workload was not started: " + status.error().describe();
    outcome = tl::unexpected(status.error());
  }
  for (const char* part : {"output", "logs"}) {
    if (!fs::exists(plan->folder / part)) continue;
    if (auto hashed = hash_outputs(plan->folder, part, sentinel.files); !hashed) {
      return tl::unexpected(hashed.error());
    }
  }
  std::sort(sentinel.files.begin(), sentinel.files.end(),
            [](const OutputFile& a, const OutputFile& b) { return a.path < b.path; });
  sentinel.ended = clock.now();
  if (auto written = write_file_atomic(plan->folder / kSentinelFile, to_json(sentinel).dump(1));
      !written) {
    return tl::unexpected(written.error());
  }
  if (!outcome) return tl::unexpected(outcome.error());
  return sentinel;
}

}  // namespace qualify::run
