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
};

/// The batch step of one attempt: verifies and lays out the bundle, runs the workload, hashes what
/// it left, and writes the sentinel as its last act. Layout below the attempt folder:
///   bundle/            the materialised bundle, read-only
///   output/            {output}
///   logs/stdout.log, logs/stderr.log      of the workload
///   result.json        the sentinel
/// A workload that fails is recorded in the sentinel, and is no error. Errors: what kept the
/// workload from being started; they are in the sentinel too wherever it could be written.
[[nodiscard]] Result<Sentinel> run_job(const std::filesystem::path& plan_file,
                                       const JobContext& context, Clock& clock);

}  // namespace qualify::run
