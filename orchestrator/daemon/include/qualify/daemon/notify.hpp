#pragma once

#include <string>

namespace qualify::daemon {

/// Tells the service manager how the daemon is: one datagram a message to the socket that it named.
/// Without a socket nothing is said. Never fails: a service manager that does not listen is no
/// reason to stop. Source: sd_notify(3), "Notes".
class Notify {
 public:
  /// `socket`: the value of NOTIFY_SOCKET, a path or "@abstract"; empty = nobody asked.
  explicit Notify(std::string socket) : socket_(std::move(socket)) {}
  void ready(const std::string& status) const { send("READY=1\nSTATUS=" + status); }
  void status(const std::string& status) const { send("STATUS=" + status); }
  void alive() const { send("WATCHDOG=1"); }
  void stopping() const { send("STOPPING=1"); }

 private:
  void send(const std::string& message) const;
  std::string socket_;
};

}  // namespace qualify::daemon
