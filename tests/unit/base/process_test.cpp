#include "qualify/base/process.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>

#include "qualify/base/files.hpp"
#include "support/temp_folder.hpp"

namespace qualify {
namespace {

ProcessRequest request(const test::TempFolder& folder, std::vector<std::string> argv) {
  ProcessRequest wanted;
  wanted.argv = std::move(argv);
  wanted.environment = {{"PATH", "/usr/bin:/bin"}, {"GREETING", "hello there"}};
  wanted.folder = folder.path();
  wanted.stdout_file = folder / "out";
  wanted.stderr_file = folder / "err";
  return wanted;
}

TEST(Process, GetsExactlyItsArgumentsEnvironmentAndFolder) {
  const test::TempFolder folder;
  const auto pid =
      spawn(request(folder, {"sh", "-c", "echo \"$GREETING|$1|$HOME\"; pwd", "-", "a b*"}));
  ASSERT_TRUE(pid) << pid.error().describe();
  EXPECT_TRUE(wait_for(*pid)->success());
  EXPECT_EQ(read_file(folder / "out").value(),
            "hello there|a b*|\n" + fs::canonical(folder.path()).string() + "\n");
}

TEST(Process, SaysHowItEnded) {
  const test::TempFolder folder;
  EXPECT_EQ(wait_for(spawn(request(folder, {"sh", "-c", "exit 3"})).value())->describe(),
            "exit code 3");
  EXPECT_EQ(wait_for(spawn(request(folder, {"sh", "-c", "kill -9 $$"})).value())->signal, SIGKILL);
}

TEST(Process, AMissingProgramIsNamed) {
  const test::TempFolder folder;
  EXPECT_EQ(spawn(request(folder, {"no-such-program"})).error().code, Errc::not_found);
  EXPECT_EQ(spawn(request(folder, {"/no/such/program"})).error().code, Errc::not_found);
  EXPECT_EQ(spawn(request(folder, {})).error().code, Errc::invalid_input);
}

TEST(Process, OurDescriptorsStayOurs) {
  const test::TempFolder folder;
  const auto lock = FileLock::acquire(folder / "lock", false).value();
  auto wanted = request(folder, {"sh", "-c", "ls -l /proc/self/fd | grep -c lock"});
  EXPECT_EQ(wait_for(spawn(wanted).value())->code, 1);  // grep found none
  wanted.inherited_fds = {lock.fd()};
  EXPECT_EQ(wait_for(spawn(wanted).value())->code, 0);
}

TEST(Process, KillsWhatForkedAway) {
  const test::TempFolder folder;
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  // The shell starts a process in a session of its own, waits until it runs, and ends.
  auto wanted = request(folder, {"sh", "-c", "setsid sleep 1000 & echo $!"});
  EXPECT_TRUE(wait_for(spawn(wanted).value())->success());
  const pid_t orphan = std::stoi(read_file(folder / "out").value());
  EXPECT_GE(kill_all_children(), 1);
  EXPECT_NE(::kill(orphan, 0), 0);
}

}  // namespace
}  // namespace qualify
