#pragma once

#include "qualify/base/process.hpp"
#include "qualify/run/job.hpp"
#include "qualify/run/job_plan.hpp"
#include "qualify/run/sentinel.hpp"

/// How the three steps of an attempt reach its nodes: srun on Slurm, this process and its children
/// elsewhere.
namespace qualify::run {

/// src/task.sh, embedded at build; it lies in the attempt folder as kTaskFile.
extern const char* const kTaskScript;
inline constexpr const char* kTaskFile = "task.sh";

enum class NodeStep { verify, collect };
[[nodiscard]] const char* name_of(NodeStep step);

/// Has every node do its part; returns what the nodes found and whether the step itself came to its
/// end ("srun: …", empty when all is well). Errors: io, not_found (srun).
[[nodiscard]] Result<std::string> run_on_nodes(NodeStep step, const JobPlan& plan,
                                               const JobContext& context, Clock& clock);

/// How the workload ended: as its first task did that failed by itself, where that is known.
struct WorkloadEnd {
  ExitStatus status;
  std::optional<FailedTask> failed_task;
  /// "exit code 7 of rank 5 on node gpu0002".
  [[nodiscard]] std::string describe() const;
};

/// The workload. `container`: options for srun. `hidden`: names that are never noted.
/// Errors: io, not_found.
struct Workload {
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;
  std::vector<std::string> container;
  std::vector<std::string> hidden;
};
[[nodiscard]] Result<WorkloadEnd> run_workload(const JobPlan& plan, const JobContext& context,
                                               Workload workload);

}  // namespace qualify::run
