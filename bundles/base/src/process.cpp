#include "qualify/base/process.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/env.hpp>
#include <boost/process/exe.hpp>
#include <boost/process/extend.hpp>
#include <boost/process/handles.hpp>
#include <boost/process/io.hpp>
#include <boost/process/search_path.hpp>
#include <boost/process/start_dir.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "qualify/base/files.hpp"

namespace qualify {

namespace bp = boost::process;

namespace {

/// Runs between fork and exec: async-signal-safe calls only.
struct ChildSetup : bp::extend::handler {
  explicit ChildSetup(const ProcessRequest& wanted) : request(&wanted), parent(::getpid()) {}

  template <class Executor>
  void on_exec_setup(Executor& /*executor*/) const {
    if (request->new_session) ::setsid();
    if (request->new_group) ::setpgid(0, 0);
    if (request->dies_with_parent) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(127);  // the parent died before the call above
    }
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    // Whatever we were started with (a lock, a pipe) is none of the child's business.
    ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    for (const int fd : request->inherited_fds) ::fcntl(fd, F_SETFD, 0);
  }

  const ProcessRequest* request;
  pid_t parent;
};

Result<std::string> find_program(const ProcessRequest& request) {
  if (request.argv.empty() || request.argv[0].empty()) {
    return fail(Errc::invalid_input, "no program to start: the argument vector is empty");
  }
  const std::string& name = request.argv[0];
  if (name.find('/') != std::string::npos) {
    const fs::path program = fs::path(name).is_absolute() ? fs::path(name) : request.folder / name;
    if (::access(program.c_str(), X_OK) != 0) {
      return fail_errno(errno, "cannot run the program", program.string());
    }
    return program.string();
  }
  std::vector<boost::filesystem::path> folders;
  const auto path = request.environment.find("PATH");
  std::istringstream entries(path == request.environment.end() ? "/usr/bin:/bin" : path->second);
  for (std::string entry; std::getline(entries, entry, ':');) folders.emplace_back(entry);
  const auto found = bp::search_path(name, folders);
  if (found.empty()) {
    return fail(Errc::not_found, "no program '" + name + "' in PATH", {},
                "give its full path, or put it in a code tree and write {code.NAME}/…");
  }
  return found.string();
}

Result<Fd> open_append(const fs::path& path) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd.valid()) return fail_errno(errno, "cannot open", path.string());
  return fd;
}

}  // namespace

Result<pid_t> spawn(const ProcessRequest& request) {
  auto program = find_program(request);
  if (!program) return tl::unexpected(program.error());
  bp::environment environment;
  for (const auto& [name, value] : request.environment) environment[name] = value;
  std::vector<std::string> arguments(request.argv.begin() + 1, request.argv.end());

  std::FILE* out = nullptr;
  std::FILE* err = nullptr;
  const auto open_file = [](const fs::path& path, std::FILE*& file,
                            std::FILE* ours) -> Result<void> {
    if (path.empty()) {
      file = ours;
      return {};
    }
    auto fd = open_append(path);
    if (!fd) return tl::unexpected(fd.error());
    file = ::fdopen(fd->release(), "a");
    return {};
  };
  const auto close_files = [&] {
    if (out != nullptr && out != stdout) std::fclose(out);
    if (err != nullptr && err != stderr) std::fclose(err);
  };
  if (auto opened = open_file(request.stdout_file, out, stdout); !opened) {
    return tl::unexpected(opened.error());
  }
  if (auto opened = open_file(request.stderr_file, err, stderr); !opened) {
    close_files();
    return tl::unexpected(opened.error());
  }

  std::error_code error;
  bp::child child(bp::exe = *program, bp::args = arguments, environment,
                  bp::start_dir = request.folder.string(), bp::std_in<bp::null, bp::std_out> out,
                  bp::std_err > err, ChildSetup(request), error);
  close_files();
  if (error) return fail_errno(error.value(), "cannot start", *program);
  const pid_t pid = child.id();
  child.detach();
  return pid;
}

std::string ExitStatus::describe() const {
  if (signal == 0) return "exit code " + std::to_string(code);
  return "killed by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
}

ExitStatus exit_status(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {0, WTERMSIG(wait_status)};
  return {WEXITSTATUS(wait_status), 0};
}

Result<ExitStatus> wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR)
      return fail_errno(errno, "cannot wait for process " + std::to_string(child));
  }
  return exit_status(status);
}

Result<EndedChild> wait_for_any() {
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, 0)) < 0) {
    if (errno != EINTR) return fail_errno(errno, "cannot wait for a child process");
  }
  return EndedChild{pid, exit_status(status)};
}

int kill_all_children() {
  int total = 0;
  for (;;) {
    // Children of every thread of ours; orphans of theirs become ours as a subreaper.
    std::vector<pid_t> children;
    for (const auto& task : fs::directory_iterator("/proc/self/task")) {
      std::ifstream list(task.path() / "children");
      for (pid_t pid = 0; list >> pid;) children.push_back(pid);
    }
    if (children.empty()) return total;
    for (const pid_t pid : children) {
      ::kill(pid, SIGKILL);
      while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
      ++total;
    }
  }
}

}  // namespace qualify
