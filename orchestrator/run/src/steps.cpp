#include "steps.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <csignal>
#include <sstream>

#include "node_files.hpp"
#include "qualify/base/files.hpp"
#include "qualify/run/launch.hpp"

namespace qualify::run {

namespace {

using Environment = std::map<std::string, std::string>;

/// srun by the job's own PATH: that of the workload may be a container's.
Result<std::string> find_srun(const JobContext& context) {
  const auto path = context.environment.find("PATH");
  const std::string all = path == context.environment.end() ? "/usr/bin:/bin" : path->second;
  for (std::size_t begin = 0; begin <= all.size();) {
    const std::size_t end = std::min(all.find(':', begin), all.size());
    const fs::path candidate = fs::path(all.substr(begin, end - begin)) / "srun";
    std::error_code error;
    if (candidate.is_absolute() && fs::exists(candidate, error)) return candidate.string();
    begin = end + 1;
  }
  return fail(Errc::not_found, "there is no srun in PATH", all);
}

/// Starts the tasks of this node, each told its rank as torchrun does, and waits for all of them.
/// The first failure is the result; the others are then killed, for they wait for the one that
/// died.
Result<WorkloadEnd> run_local_tasks(const JobPlan& plan, const std::string& host,
                                    ProcessRequest process) {
  // What a task forks away becomes ours, and is ended with it.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::vector<pid_t> tasks;
  const Environment common = process.environment;
  for (std::uint32_t rank = 0; rank < plan.tasks_per_node; ++rank) {
    process.environment = common;
    process.environment["RANK"] = std::to_string(rank);
    process.environment["LOCAL_RANK"] = std::to_string(rank);
    process.environment["NODE_RANK"] = "0";
    process.environment["WORLD_SIZE"] = std::to_string(plan.tasks_per_node);
    const auto pid = spawn(process);
    if (!pid) {
      (void)kill_all_children();
      return tl::unexpected(pid.error());
    }
    tasks.push_back(*pid);
  }
  WorkloadEnd first;
  std::size_t running = tasks.size();
  while (running > 0) {
    const auto ended = wait_for_any();
    if (!ended) return tl::unexpected(ended.error());
    const auto task = std::find(tasks.begin(), tasks.end(), ended->pid);
    if (task == tasks.end()) continue;
    --running;
    if (!ended->status.success()) {
      first = {ended->status, FailedTask{static_cast<std::uint32_t>(task - tasks.begin()), host}};
      break;
    }
  }
  (void)kill_all_children();
  return first;
}

Result<ExitStatus> run_and_wait(const ProcessRequest& process) {
  const auto pid = spawn(process);
  if (!pid) return tl::unexpected(pid.error());
  return wait_for(*pid);
}

/// What the first task that failed by itself noted; nothing when none did (src/task.sh), as after
/// a SIGKILL of all its processes or when its node died.
std::optional<WorkloadEnd> first_failure(const JobPlan& plan) {
  const auto text = read_file(plan.folder / kNodesFolder / kFirstFailureFile, 4096);
  if (!text) return std::nullopt;
  std::istringstream words(*text);
  WorkloadEnd end;
  FailedTask task;
  words >> end.status.code >> task.rank >> task.node;
  const bool whole = words && end.status.code > 0 && end.status.code < 256 &&
                     task.rank < std::uint64_t{plan.nodes} * plan.tasks_per_node;
  if (!whole) return std::nullopt;
  // As a shell says it.
  if (end.status.code > 128 && end.status.code < 128 + NSIG) {
    end.status = {0, end.status.code - 128};
  }
  end.failed_task = std::move(task);
  return end;
}

/// The last line that a step printed: srun's word on why it did not come to its end.
std::string last_line(const fs::path& file) {
  std::string text = read_file(file, 1ULL << 30U).value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t newline = text.rfind('\n');
  return newline == std::string::npos ? text : text.substr(newline + 1);
}

}  // namespace

const char* name_of(NodeStep step) {
  return step == NodeStep::verify ? "verify" : "collect";
}

Result<std::string> run_on_nodes(NodeStep step, const JobPlan& plan, const JobContext& context,
                                 Clock& clock) {
  if (plan.scheduler != "slurm") {
    const auto faults = step == NodeStep::verify ? verify_node(plan, context, clock)
                                                 : collect_node(plan, context, clock);
    if (!faults) return tl::unexpected(faults.error());
    return std::string();
  }
  const auto srun = find_srun(context);
  if (!srun) return srun;
  ProcessRequest process;
  // Every node says what it finds, whatever the others find.
  process.argv = srun_argv(*srun, plan, 1, false);
  process.argv.insert(process.argv.end(), {"--", context.executable, "job-node", name_of(step),
                                           (plan.folder / kJobPlanFile).string()});
  process.environment = context.environment;
  process.folder = plan.folder;
  process.stdout_file = plan.folder / "logs" / (std::string(name_of(step)) + ".log");
  process.stderr_file = process.stdout_file;
  process.dies_with_parent = true;
  const auto status = run_and_wait(process);
  if (!status) return tl::unexpected(status.error());
  if (status->success()) return std::string();
  return "the " + std::string(name_of(step)) + " step ended with " + status->describe() + ": " +
         last_line(process.stdout_file);
}

std::string WorkloadEnd::describe() const {
  if (!failed_task) return status.describe();
  return status.describe() + " of rank " + std::to_string(failed_task->rank) + " on node " +
         failed_task->node;
}

Result<WorkloadEnd> run_workload(const JobPlan& plan, const JobContext& context,
                                 Workload workload) {
  ProcessRequest process;
  process.environment = std::move(workload.environment);
  process.folder = plan.folder / "output";
  process.stdout_file = plan.folder / "logs" / "stdout.log";
  process.stderr_file = plan.folder / "logs" / "stderr.log";
  process.dies_with_parent = true;
  if (plan.scheduler != "slurm") {
    process.argv = std::move(workload.argv);
    return run_local_tasks(plan, context.host, std::move(process));
  }
  const auto srun = find_srun(context);
  if (!srun) return tl::unexpected(srun.error());
  const fs::path script = plan.folder / kTaskFile;
  if (auto written = write_file_atomic(script, kTaskScript, 0555); !written) {
    return tl::unexpected(written.error());
  }
  std::string hidden;
  for (const std::string& name : workload.hidden)
    hidden += (hidden.empty() ? "-u " : " -u ") + name;
  process.argv = srun_argv(*srun, plan, plan.tasks_per_node, true);
  process.argv.insert(process.argv.end(), workload.container.begin(), workload.container.end());
  process.argv.insert(process.argv.end(),
                      {"--", script.string(), (plan.folder / kNodesFolder).string(), hidden});
  process.argv.insert(process.argv.end(), workload.argv.begin(), workload.argv.end());
  const auto status = run_and_wait(process);
  if (!status) return tl::unexpected(status.error());
  if (!status->success()) {
    if (auto first = first_failure(plan)) return std::move(*first);
  }
  return WorkloadEnd{*status, std::nullopt};
}

}  // namespace qualify::run
