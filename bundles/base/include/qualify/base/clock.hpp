#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "qualify/base/error.hpp"

namespace qualify {

/// A point in civil time, microseconds since the Unix epoch, UTC.
using Time = std::chrono::sys_time<std::chrono::microseconds>;
using Duration = std::chrono::microseconds;

/// The only source of time below the command line. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Time now() const = 0;
  /// Waits, or returns early when a signal arrives. A fake clock advances instead of waiting.
  virtual void sleep_for(Duration duration) = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override;
  void sleep_for(Duration duration) override;
};

/// "2026-11-30T04:45:05.000000Z" (RFC 3339, UTC, microseconds).
[[nodiscard]] std::string format_time(Time time);

/// Reads what format_time writes; a fraction of 0 to 6 digits and the zone Z are required.
/// Errors: invalid_input.
[[nodiscard]] Result<Time> parse_time(std::string_view text);

/// "1h 02m", "3m 20s", "12.4 s", "350 ms": for people.
[[nodiscard]] std::string format_duration(Duration duration);

/// "90s", "15m", "4h", "2d", "1h30m": positive whole numbers with units s, m, h, d.
/// Errors: invalid_input.
[[nodiscard]] Result<Duration> parse_duration(std::string_view text);

}  // namespace qualify
