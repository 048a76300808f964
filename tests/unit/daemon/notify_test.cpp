#include "qualify/daemon/notify.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "qualify/base/files.hpp"
#include "support/temp_folder.hpp"

namespace qualify::daemon {
namespace {

/// A service manager's end of the socket.
class Manager {
 public:
  explicit Manager(const std::string& name) : fd_(::socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = 0;
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  }
  std::string next() {
    char buffer[512];
    const ssize_t size = ::recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    return size < 0 ? std::string("(nothing)") : std::string(buffer, static_cast<size_t>(size));
  }

 private:
  Fd fd_;
};

TEST(Notify, SaysReadyAliveAndStopping) {
  const test::TempFolder folder;
  const std::string path = (folder / "notify").string();
  Manager manager(path);
  const Notify notify(path);
  notify.ready("watching");
  EXPECT_EQ(manager.next(), "READY=1\nSTATUS=watching");
  notify.alive();
  EXPECT_EQ(manager.next(), "WATCHDOG=1");
  notify.stopping();
  EXPECT_EQ(manager.next(), "STOPPING=1");
}

TEST(Notify, TakesAbstractSockets) {
  const std::string name = "@qualify-notify-test-" + std::to_string(::getpid());
  Manager manager(name);
  Notify(name).alive();
  EXPECT_EQ(manager.next(), "WATCHDOG=1");
}

TEST(Notify, WithoutAManagerSaysNothing) {
  Notify("").ready("watching");
  Notify("/nowhere/at/all").alive();
  Notify(std::string(200, 'x')).alive();
}

}  // namespace
}  // namespace qualify::daemon
