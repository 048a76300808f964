#include "probe.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "version.hpp"

namespace qualify::scheduler::slurm {

namespace {

constexpr std::chrono::seconds kPatience{10};

}  // namespace

Result<void> configuration_is_there() {
  int ends[2];
  if (pipe(ends) != 0) return fail_errno(errno, "cannot make a pipe");
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    return fail_errno(errno, "cannot start a process");
  }
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    initialise();
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd waiting{ends[0], POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::max<long>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      kill(child, SIGKILL);
      break;
    }
    char buffer[512];
    const ssize_t count = read(ends[0], buffer, sizeof buffer);
    if (count <= 0) break;
    said.append(buffer, static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return fail(Errc::unavailable, "Slurm is not configured here" + (said.empty() ? "" : ": " + said),
              "libslurm",
              "set SLURM_CONF to the cluster's slurm.conf, or run on one of its login nodes");
}

}  // namespace qualify::scheduler::slurm
