#pragma once

#include <optional>
#include <string>

#include "qualify/base/files.hpp"
#include "qualify/scheduler/types.hpp"

/// One job's folder, the only thing that scheduler and supervisor share:
///   request.json  what to start                      written by submit, first
///   alive         locked by the supervisor for its whole life
///   started.json  pid and time                       O_EXCL: the point of no second start
///   cancel        somebody asked to stop
///   ended.json    how it ended                       written last
namespace qualify::scheduler::local {

struct Request {
  std::string nonce;
  std::string name;
  std::string executable;
  std::string plan_file;
  std::string folder;
  std::map<std::string, std::string> environment;
  Duration time_limit{};
  Time submit_time;
};
[[nodiscard]] Result<void> write_request(const fs::path& job_folder, const Request& request);
/// Writes it again without its environment, once the job has it: values passed at launch,
/// credentials among them, are not kept.
[[nodiscard]] Result<void> forget_environment(const fs::path& job_folder, Request request);
[[nodiscard]] Result<Request> read_request(const fs::path& job_folder);

struct Started {
  int pid = 0;  ///< of the supervisor; valid while `alive` is locked
  Time time;
};
/// Errors: already_exists when the job was started before.
[[nodiscard]] Result<void> write_started(const fs::path& job_folder, const Started& started);
/// Nothing when the job was not started.
[[nodiscard]] Result<std::optional<Started>> read_started(const fs::path& job_folder);

struct Ended {
  Time time;
  JobState state = JobState::failed;
  int exit_code = 0;
  int signal = 0;
  std::string reason;
};
[[nodiscard]] Result<void> write_ended(const fs::path& job_folder, const Ended& ended);
[[nodiscard]] Result<std::optional<Ended>> read_ended(const fs::path& job_folder);

/// Whether a supervisor lives: its lock is held.
[[nodiscard]] bool is_alive(const fs::path& job_folder);

}  // namespace qualify::scheduler::local
