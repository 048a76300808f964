#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "qualify/base/error.hpp"
#include "qualify/run/job_plan.hpp"
#include "qualify/store/bundle.hpp"

/// What exactly is started: pure functions from bundle, arm and plan to argv and environment.
namespace qualify::run {

/// Where the pieces lie inside a job.
struct JobLayout {
  std::filesystem::path bundle;  ///< the materialised bundle
  std::filesystem::path output;  ///< {output}
};

/// The workload's argv: launch.argv and the arm's arguments with their placeholders replaced.
/// Errors: invalid_input (unknown placeholder, unknown name), with the argument in question.
[[nodiscard]] Result<std::vector<std::string>> workload_argv(const store::Bundle& bundle,
                                                             const spec::Arm& arm,
                                                             const JobPlan& plan,
                                                             const JobLayout& layout);

/// Names that reach the workload from outside without being declared: what a process needs to run
/// at all (PATH, HOME, …) and what the scheduler sets (SLURM_*, CUDA_VISIBLE_DEVICES, …).
/// Everything else that is inherited is dropped, so that no login shell can change a recipe.
[[nodiscard]] bool is_inherited(const std::string& name);

/// The workload's whole environment: inherited names, then the bundle's, then the arm's (both with
/// placeholders replaced), then the passed ones. Errors: invalid_input (a passed name is not set),
/// refused (a required value differs).
[[nodiscard]] Result<std::map<std::string, std::string>> workload_environment(
    const store::Bundle& bundle, const spec::Arm& arm, const JobPlan& plan, const JobLayout& layout,
    const std::map<std::string, std::string>& inherited);

/// What torch.distributed and torchrun ask for to find each other, the same on all nodes; declared
/// values stand. `first_node`: where rank 0 is. Ranks are per task: src/task.sh, run_local_tasks.
void add_rendezvous(std::map<std::string, std::string>& environment, const JobPlan& plan,
                    const std::string& first_node);

/// srun's argv up to its "--", for one step over all nodes of the allocation: `tasks_per_node`
/// tasks on each, all GPUs visible to every task. `stop_at_failure`: the first task that fails
/// ends the others, which wait for it; otherwise every task comes to its end.
/// srun's own options only, every one a word by itself: nothing is read by a shell.
[[nodiscard]] std::vector<std::string> srun_argv(const std::string& srun, const JobPlan& plan,
                                                 std::uint32_t tasks_per_node,
                                                 bool stop_at_failure);

/// The options of pyxis with which srun enters the bundle's container, the attempt folder and the
/// data in their own places, and declared variables over those of the image. None when the bundle
/// has no container, or its argv names {container}: then the workload enters it by itself.
/// Errors: unsupported (a container that nothing here enters), invalid_input (a path that pyxis
/// cannot take).
/// Source: pyxis README (options), enroot import (docker://REGISTRY#IMAGE:DIGEST).
[[nodiscard]] Result<std::vector<std::string>> container_options(const store::Bundle& bundle,
                                                                 const spec::Arm& arm,
                                                                 const JobPlan& plan,
                                                                 const JobLayout& layout);

/// Bytes that are no text would make a record unreadable: such a value is kept as "hex:…".
[[nodiscard]] std::map<std::string, std::string> printable(
    std::map<std::string, std::string> environment);

/// The same for the record: passed values are replaced by "(passed at launch)".
[[nodiscard]] std::map<std::string, std::string> recorded_environment(
    const store::Bundle& bundle, std::map<std::string, std::string> environment);

}  // namespace qualify::run
