#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <vector>

#include "job_folder.hpp"
#include "qualify/base/process.hpp"
#include "qualify/scheduler/local.hpp"

namespace qualify::scheduler {

namespace {

using Steady = std::chrono::steady_clock;
using local::Ended;

/// Between the polite signal and the last one.
constexpr auto kGrace = std::chrono::seconds(10);

constexpr int kStarted = 0;
constexpr int kCannotStart = 1;
constexpr int kStartedBefore = 3;

/// Waits for one of `signals`, at most until `deadline`; 0 when the time is up.
int wait_signal(const sigset_t& signals, std::optional<Steady::time_point> deadline) {
  for (;;) {
    int signal = 0;
    if (deadline) {
      const auto left = std::max(*deadline - Steady::now(), Steady::duration::zero());
      const auto whole = std::chrono::floor<std::chrono::seconds>(left);
      timespec wait{};
      wait.tv_sec = whole.count();
      wait.tv_nsec = std::chrono::nanoseconds(left - whole).count();
      signal = ::sigtimedwait(&signals, nullptr, &wait);
    } else {
      signal = ::sigwaitinfo(&signals, nullptr);
    }
    if (signal > 0) return signal;
    if (errno == EAGAIN) return 0;
  }
}

/// Runs the job to its end: its exit, the time limit, or a cancellation.
Ended run_to_end(const fs::path& job_folder, const local::Request& request,
                 const sigset_t& signals) {
  Ended ended;
  ProcessRequest process;
  process.argv = {request.executable, "job", request.plan_file};
  process.environment = request.environment;
  process.folder = request.folder;
  process.stdout_file = fs::path(request.folder) / "job.out";
  process.stderr_file = fs::path(request.folder) / "job.err";
  process.new_group = true;
  process.dies_with_parent = true;
  const auto child = spawn(process);
  if (!child) {
    ended.exit_code = 127;
    ended.reason = child.error().describe();
    return ended;
  }

  std::optional<Steady::time_point> deadline;
  if (request.time_limit > Duration::zero()) deadline = Steady::now() + request.time_limit;
  std::optional<JobState> stopped_as;
  // Cancelled before we were there to hear of it.
  if (fs::exists(job_folder / "cancel")) ::kill(::getpid(), SIGTERM);
  for (;;) {
    const int signal = wait_signal(signals, deadline);
    if (signal == SIGCHLD) {
      int status = 0;
      for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid != *child) continue;
        const ExitStatus exit = exit_status(status);
        ended.exit_code = exit.code;
        ended.signal = exit.signal;
        ended.state = stopped_as.value_or(exit.success() ? JobState::completed : JobState::failed);
        if (ended.state == JobState::failed) ended.reason = exit.describe();
        return ended;
      }
      continue;
    }
    if (stopped_as) {  // the grace is over, or somebody insists
      ::kill(-*child, SIGKILL);
      deadline.reset();
      continue;
    }
    stopped_as = signal == 0 ? JobState::timeout : JobState::cancelled;
    ended.reason = signal == 0 ? "time limit of " + format_duration(request.time_limit) + " reached"
                               : "cancelled";
    ::kill(-*child, SIGTERM);
    deadline = Steady::now() + kGrace;
  }
}

/// The background process. `ready` is told (one byte, the exit code to give) once it is decided
/// whether this process starts the job.
/// `machine_lock`: inherited, held until the job and all that it started are gone.
int supervise(const fs::path& job_folder, Clock& clock, int ready, std::vector<Fd> machine_lock) {
  const auto tell = [&](int code) {
    const char byte = static_cast<char>(code);
    if (::write(ready, &byte, 1) != 1) return;
    ::close(ready);
  };
  ::setsid();
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);

  const auto alive = FileLock::acquire(job_folder / "alive", false);
  if (!alive) {
    tell(kStartedBefore);
    return kStartedBefore;
  }
  const auto request = local::read_request(job_folder);
  if (!request) {
    tell(kCannotStart);
    return kCannotStart;
  }
  // The point of no return: beyond it this job is started, by this process and no other.
  if (auto mine = local::write_started(job_folder, {::getpid(), clock.now()}); !mine) {
    const int code = mine.error().code == Errc::already_exists ? kStartedBefore : kCannotStart;
    tell(code);
    return code;
  }
  const auto forgotten = local::forget_environment(job_folder, *request);
  tell(kStarted);

  Ended ended = run_to_end(job_folder, *request, signals);
  if (const int left = kill_all_children(); left > 0) {
    ended.reason += (ended.reason.empty() ? "" : "; ") + std::to_string(left) +
                    " processes left behind were killed";
  }
  // Freed before the end is known: whoever sees the end may start the next job at once.
  machine_lock.clear();
  ended.time = clock.now();
  if (!forgotten) (void)local::forget_environment(job_folder, *request);  // the disk was full
  return local::write_ended(job_folder, ended) ? 0 : kCannotStart;
}

/// The machine lock came by inheritance, under a number that only the starter knew.
std::vector<Fd> inherited_descriptors() {
  std::vector<int> numbers;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    const int number = std::stoi(entry.path().filename().string());
    if (number > 2) numbers.push_back(number);
  }
  std::vector<Fd> descriptors;
  for (const int number : numbers) {
    // The folder's own descriptor was among them and is closed by now.
    if (::fcntl(number, F_SETFD, FD_CLOEXEC) == 0) descriptors.emplace_back(number);
  }
  return descriptors;
}

}  // namespace

int supervise_local_job(const fs::path& job_folder, Clock& clock) {
  std::vector<Fd> machine_lock = inherited_descriptors();
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return kCannotStart;
  const pid_t background = ::fork();
  if (background < 0) return kCannotStart;
  if (background == 0) {
    ::close(pipe[0]);
    ::_exit(supervise(job_folder, clock, pipe[1], std::move(machine_lock)));
  }
  ::close(pipe[1]);
  char code = kCannotStart;
  while (::read(pipe[0], &code, 1) < 0 && errno == EINTR) {
  }
  return code;
}

}  // namespace qualify::scheduler
