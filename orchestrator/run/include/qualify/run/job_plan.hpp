#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "qualify/base/digest.hpp"
#include "qualify/base/json.hpp"
#include "qualify/spec/bundle_spec.hpp"

namespace qualify::run {

/// Everything that `qualify job` needs, written into the attempt folder before submit. It names no
/// secret: passed variables arrive in the job's environment and are listed here by name only.
struct JobPlan {
  std::string qualification;
  std::string gate;
  std::string run;
  int attempt = 1;
  std::string nonce;
  Digest bundle;
  std::filesystem::path store;   ///< bundle store, absolute
  std::filesystem::path folder;  ///< attempt folder, absolute
  std::string arm;
  std::int64_t seed = 0;
  std::string scheduler;  ///< "local": start tasks here; "slurm": through srun
  std::string reservation;
  std::vector<std::string> granted_nodes;  ///< the job checks on each node that it is among them
  std::uint32_t nodes = 1;
  std::uint32_t tasks_per_node = 1;
  std::uint32_t gpus_per_node = 0;
  /// What {checkpoint} and {checkpoint_iteration} stand for in a resumed run; empty otherwise.
  std::filesystem::path checkpoint;
  std::int64_t checkpoint_iteration = 0;
  /// What the workload is to record, as QUALIFY_CAPTURE_PLAN tells it (docs/formats/); empty: what
  /// it records by itself.
  std::filesystem::path capture_plan;
  /// Job plans of the attempts that follow in the same allocation, absolute, in order.
  std::vector<std::filesystem::path> further;
};

inline constexpr const char* kJobPlanFile = "job-plan.json";
inline constexpr const char* kCapturePlanFile = "capture-plan.json";

[[nodiscard]] Json to_json(const JobPlan& plan);
/// Errors: not_found, invalid_input.
[[nodiscard]] Result<JobPlan> read_job_plan(const std::filesystem::path& file);

}  // namespace qualify::run
