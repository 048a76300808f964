#include <pwd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "app.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace {

std::map<std::string, std::string> read_environment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

std::string user_name() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry != nullptr ? entry->pw_name : std::to_string(::getuid());
}

qualify::cli::TerminalSize terminal_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 40) return {};
  return {size.ws_col, size.ws_row};
}

/// A write over the file size limit then fails by name, like one on a full disk, instead of ending
/// the process. A handler, not SIG_IGN, which programs that are started would inherit.
void turn_file_limit_into_error() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGXFSZ, &action, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace qualify;
  turn_file_limit_into_error();
  SystemClock clock;
  std::error_code ignored;
  cli::Session session{std::cout,
                       std::cerr,
                       clock,
                       read_environment(),
                       std::filesystem::read_symlink("/proc/self/exe", ignored),
                       std::filesystem::current_path(ignored),
                       host_name(),
                       user_name(),
                       ::isatty(STDERR_FILENO) == 1,
                       terminal_size().columns,
                       {},
                       Exit::ok,
                       ::isatty(STDOUT_FILENO) == 1,
                       terminal_size};

  CLI::App app;
  cli::describe_program(app, session);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : static_cast<int>(Exit::usage);
  } catch (const std::exception& error) {
    // No memory, or a disk that does not give back what was written to it: nobody could go on.
    std::cerr << "qualify: " << error.what() << '\n';
    return static_cast<int>(Exit::unavailable);
  }
  return static_cast<int>(session.exit);
}
