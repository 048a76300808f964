#include "passphrase.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "qualify/base/files.hpp"
#include "signals.hpp"
#include "table.hpp"

namespace qualify::cli {

namespace {

/// Characters are not shown while it lives.
class Hidden {
 public:
  explicit Hidden(int terminal) : terminal_(terminal) {
    hidden_ = ::tcgetattr(terminal, &before_) == 0;
    if (!hidden_) return;
    termios quiet = before_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHOE | ECHOK | ECHONL);
    // Stopped in the middle, the shell would be left with a silent terminal.
    quiet.c_cc[VSUSP] = _POSIX_VDISABLE;
    hidden_ = ::tcsetattr(terminal, TCSAFLUSH, &quiet) == 0;
  }
  ~Hidden() {
    if (hidden_) ::tcsetattr(terminal_, TCSAFLUSH, &before_);
  }
  Hidden(const Hidden&) = delete;
  Hidden& operator=(const Hidden&) = delete;
  [[nodiscard]] bool worked() const { return hidden_; }

 private:
  int terminal_;
  termios before_{};
  bool hidden_ = false;
};

}  // namespace

Result<std::string> read_hidden_line(const std::string& prompt) {
  const Fd terminal(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (!terminal.valid()) {
    return fail(Errc::refused, "there is no terminal to ask on", {},
                "give the passphrase with --passphrase-file FILE");
  }
  catch_stop_signals();  // a read then ends early, and the terminal is put back
  const Hidden hidden(terminal.get());
  if (!hidden.worked()) {
    return fail(Errc::refused, "the terminal cannot hide what is typed", {},
                "give the passphrase with --passphrase-file FILE");
  }
  const auto say = [&](const std::string& text) {
    (void)write_all(terminal.get(), std::as_bytes(std::span(text)), "/dev/tty");
  };
  say(prompt);
  std::string line;
  for (;;) {
    char c = 0;
    const ssize_t got = ::read(terminal.get(), &c, 1);
    if (stop_requested() != run::Stop::none || (got < 0 && errno == EINTR)) {
      say("\n");
      return fail(Errc::interrupted, "stopped");
    }
    if (got < 0) return fail_errno(errno, "cannot read from the terminal", "/dev/tty");
    if (got == 0 || c == '\n') break;
    line += c;
  }
  say("\n");
  return line;
}

Result<std::string> read_passphrase_file(const std::filesystem::path& file) {
  const auto fd = open_read(file);
  if (!fd) return tl::unexpected(fd.error());
  struct stat status {};
  if (::fstat(fd->get(), &status) != 0) return fail_errno(errno, "cannot read", file.string());
  if (!S_ISREG(status.st_mode) || (status.st_mode & 077U) != 0) {
    return fail(Errc::refused, "others may read or write this passphrase", file.string(),
                "chmod 600 " + file.string());
  }
  auto text = read_file(file, 4096);
  if (!text) return text;
  text->erase(std::min(text->find_first_of("\r\n"), text->size()));
  if (text->empty()) return fail(Errc::invalid_input, "no passphrase in it", file.string());
  return text;
}

ledger::AskPassphrase ask_passphrase(const Session& session, const std::string& file) {
  if (!file.empty()) {
    return [path = session.folder / file](const std::filesystem::path&) {
      return read_passphrase_file(path);
    };
  }
  return [](const std::filesystem::path& key) {
    return read_hidden_line("Passphrase for " + printable(key.string()) + ": ");
  };
}

}  // namespace qualify::cli
