#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "qualify/base/error.hpp"

namespace qualify {

/// What to start: an argument vector, never a shell string.
struct ProcessRequest {
  std::vector<std::string> argv;  ///< argv[0] is searched in PATH of `environment` if it has no '/'
  std::map<std::string, std::string> environment;  ///< the whole of it
  std::filesystem::path folder;                    ///< working folder
  std::filesystem::path stdout_file;               ///< appended to; empty = ours
  std::filesystem::path stderr_file;               ///< appended to; empty = ours
  bool new_session = false;                        ///< setsid: no terminal signal reaches it
  bool new_group = false;          ///< its own process group, so that it can be signalled as one
  bool dies_with_parent = false;   ///< SIGKILL when the starting thread ends (Linux)
  std::vector<int> inherited_fds;  ///< stay open; all others above 2 are closed
};

/// Starts a child of this process; standard input is /dev/null, all signals are unblocked.
/// The caller reaps it. Errors: not_found (the program or folder), io.
[[nodiscard]] Result<pid_t> spawn(const ProcessRequest& request);

/// How a process ended.
struct ExitStatus {
  int code = 0;    ///< exit code, when signal is 0
  int signal = 0;  ///< that ended it, or 0
  [[nodiscard]] bool success() const { return code == 0 && signal == 0; }
  /// "exit code 3", "killed by signal 9 (Killed)".
  [[nodiscard]] std::string describe() const;
};
/// From the status word of waitpid.
[[nodiscard]] ExitStatus exit_status(int wait_status);

/// Waits for one child. Errors: io.
[[nodiscard]] Result<ExitStatus> wait_for(pid_t child);

/// Waits for whichever child ends first. Errors: io (there is none).
struct EndedChild {
  pid_t pid = 0;
  ExitStatus status;
};
[[nodiscard]] Result<EndedChild> wait_for_any();

/// Kills (SIGKILL) and reaps every descendant that is, or through PR_SET_CHILD_SUBREAPER becomes, a
/// child of this process; returns how many there were.
int kill_all_children();

}  // namespace qualify
