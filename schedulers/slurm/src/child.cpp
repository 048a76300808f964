#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <span>

#include "qualify/base/files.hpp"

namespace qualify::scheduler::slurm {

namespace {

struct Pipe {
  Fd read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "cannot make a pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

/// Reads both until both are closed; false: not in time.
bool drain(const Fd& result, const Fd& printed, ChildEnd& end, std::chrono::seconds patience) {
  const auto limit = std::chrono::steady_clock::now() + patience;
  std::array<pollfd, 2> waiting = {pollfd{result.get(), POLLIN, 0},
                                   pollfd{printed.get(), POLLIN, 0}};
  const std::array<std::string*, 2> texts = {&end.result, &end.printed};
  while (waiting[0].fd >= 0 || waiting[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        limit - std::chrono::steady_clock::now());
    const int ready =
        poll(waiting.data(), waiting.size(), static_cast<int>(std::max<long>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents == 0) continue;
      std::array<char, 4096> buffer{};
      const ssize_t count = read(waiting[i].fd, buffer.data(), buffer.size());
      if (count > 0) {
        texts[i]->append(buffer.data(), static_cast<std::size_t>(count));
      } else if (count == 0 || errno != EINTR) {
        waiting[i].fd = -1;
      }
    }
  }
  return true;
}

}  // namespace

Result<ChildEnd> in_child(const std::function<std::string()>& work, std::chrono::seconds patience) {
  auto result = make_pipe();
  auto printed = make_pipe();
  if (!result) return tl::unexpected(result.error());
  if (!printed) return tl::unexpected(printed.error());
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return fail_errno(errno, "cannot start a process");
  if (child == 0) {
    // It has our locks: without us it must not live on with them.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    dup2(printed->write.get(), STDOUT_FILENO);
    dup2(printed->write.get(), STDERR_FILENO);
    const std::string text = work();
    const auto written = write_all(result->write.get(), std::as_bytes(std::span(text)), "pipe");
    _exit(written ? 0 : 1);
  }
  result->write = Fd();
  printed->write = Fd();
  ChildEnd end;
  const bool in_time = drain(result->read, printed->read, end, patience);
  if (!in_time) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  end.well = in_time && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  while (!end.printed.empty() && end.printed.back() == '\n') end.printed.pop_back();
  return end;
}

}  // namespace qualify::scheduler::slurm
