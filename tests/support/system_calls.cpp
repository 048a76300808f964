#include "support/system_calls.hpp"

#include <gtest/gtest.h>

#include "support/program.hpp"

namespace qualify::test {

namespace {

Ran run_with(const std::vector<std::string>& argv, const std::string& call,
             const std::string& injection) {
  std::vector<std::string> all{"/usr/bin/strace",
                               "-qq",
                               "-f",
                               "-o",
                               "/dev/null",
                               "-e",
                               "trace=" + call,
                               "-e",
                               "inject=" + call + ":" + injection};
  all.insert(all.end(), argv.begin(), argv.end());
  return run_program(all);
}

}  // namespace

const std::vector<std::string>& file_calls() {
  static const std::vector<std::string> all = {
      "openat", "write",     "pwrite64",  "fsync",  "fdatasync",      "fchmod",
      "rename", "link",      "mkdir",     "unlink", "flock",          "utimensat",
      "ioctl",  "ftruncate", "fallocate", "chmod",  "sync_file_range"};
  return all;
}

int kill_at_every_step(const std::vector<std::string>& argv, const std::vector<std::string>& calls,
                       const std::function<void(const std::string& point)>& check) {
  int kills = 0;
  for (const std::string& call : calls) {
    for (int step = 1;; ++step) {
      const auto ran = run_with(argv, call, "signal=SIGKILL:when=" + std::to_string(step));
      const std::string point = call + " " + std::to_string(step);
      const bool ended = ran.exit_code == 0;
      if (!ended && ran.exit_code != 137) ADD_FAILURE() << point << ": " << ran.output;
      check(point);
      if (::testing::Test::HasFailure()) return kills;
      if (ended) break;
      ++kills;
    }
  }
  return kills;
}

int fill_disk_at_every_step(
    const std::vector<std::string>& argv, const std::vector<std::string>& calls,
    const std::function<void(const std::string& point, int exit_code)>& check) {
  int full = 0;
  for (const std::string& call : calls) {
    for (int step = 1;; ++step) {
      const auto ran = run_with(argv, call, "error=ENOSPC:when=" + std::to_string(step) + "+");
      const std::string point = call + " " + std::to_string(step) + ": " + ran.output;
      if (ran.exit_code >= 128) ADD_FAILURE() << "a full disk ended it at " << point;
      check(point, ran.exit_code);
      if (::testing::Test::HasFailure()) return full;
      if (ran.exit_code == 0) break;
      ++full;
    }
  }
  return full;
}

}  // namespace qualify::test
