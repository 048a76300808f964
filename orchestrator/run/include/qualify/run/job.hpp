#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "qualify/base/clock.hpp"
#include "qualify/base/error.hpp"
#include "qualify/run/sentinel.hpp"

namespace qualify::run {

/// What a job gets from outside.
struct JobContext {
  std::map<std::string, std::string> environment;  ///< inherited, whole
  std::string host;
  std::string executable;                         ///< absolute path of this qualify, for node steps
  std::string gpu_library = "libnvidia-ml.so.1";  ///< where driver and GPUs are asked for
};

/// The batch step of one attempt: lays out the bundle, has every node verify it, runs the workload,
/// has the nodes hash what it left, and writes the sentinel as its last act. On Slurm each of the
/// three is a job step through srun, started from an argv array. Layout below the attempt folder:
///   bundle/            the materialised bundle, read-only
///   output/            {output}
///   logs/stdout.log, logs/stderr.log      of the workload
///   logs/verify.log, logs/collect.log     of the node steps
///   nodes/, nodes.jsonl   what each node says of itself (node.hpp)
///   result.json        the sentinel
/// Attempts that share the allocation (JobPlan::further) follow one after the other, each in its
/// own folder; the first that fails is the last.
/// A workload that fails is recorded in the sentinel, and is no error. Returns the last attempt's
/// sentinel. Errors: what kept the workload from being started; they are in the sentinel too
/// wherever it could be written.
[[nodiscard]] Result<Sentinel> run_job(const std::filesystem::path& plan_file,
                                       const JobContext& context, Clock& clock);

}  // namespace qualify::run
