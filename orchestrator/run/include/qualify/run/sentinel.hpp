#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "qualify/base/clock.hpp"
#include "qualify/base/digest.hpp"
#include "qualify/base/json.hpp"

namespace qualify::run {

/// A file that the workload left, hashed where it was written.
struct OutputFile {
  std::string path;  ///< relative to the attempt folder
  std::uint64_t size = 0;
  Digest digest;
};

/// The first task that failed by itself: srun then ends the others, and its own exit code is the
/// highest of all.
struct FailedTask {
  std::uint32_t rank = 0;
  std::string node;
};

/// What the job says of itself, written atomically as its last act. Without it a run is never
/// whole, whatever the scheduler reports.
struct Sentinel {
  std::string nonce;
  Digest bundle;      ///< as verified inside the job
  int exit_code = 0;  ///< of failed_task, where that is known, or of the step as a whole
  int signal = 0;
  std::optional<FailedTask> failed_task;
  std::string failure;  ///< why the workload was not, or not rightly, run; empty otherwise
  std::string stage;    ///< where it failed: "prepare", "verify", "train", "collect"; empty = not
  std::string host;     ///< of the batch step
  std::vector<std::string> nodes;  ///< where it ran, by each node's own account; sorted
  std::uint32_t restart_count = 0;
  Time started;
  Time ended;
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;  ///< effective; passed values left out
  std::vector<OutputFile> files;
};

inline constexpr const char* kSentinelFile = "result.json";

/// Exit code of a job that could keep no sentinel because its disk is full: the scheduler's word is
/// all that is left then, and the workload is not to blame.
inline constexpr int kNoRoomExit = 28;

[[nodiscard]] Json to_json(const Sentinel& sentinel);
/// Nothing when there is none. Errors: integrity (there, but damaged), io.
[[nodiscard]] Result<std::optional<Sentinel>> read_sentinel(const std::filesystem::path& folder);

}  // namespace qualify::run
