#pragma once

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

/// The same for the record: passed values are replaced by "(passed at launch)".
[[nodiscard]] std::map<std::string, std::string> recorded_environment(
    const store::Bundle& bundle, std::map<std::string, std::string> environment);

}  // namespace qualify::run
