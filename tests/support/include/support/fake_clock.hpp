#pragma once

#include <mutex>

#include "qualify/base/clock.hpp"

namespace qualify::test {

/// Time that moves only when told, or by as much as somebody sleeps. Thread-safe.
class FakeClock final : public Clock {
 public:
  /// Starts at 2026-01-01T00:00:00Z unless told otherwise.
  explicit FakeClock(Time start = Time(std::chrono::seconds(1767225600)));
  [[nodiscard]] Time now() const override;
  void sleep_for(Duration duration) override;
  void set(Time time);
  void advance(Duration duration) { sleep_for(duration); }

 private:
  mutable std::mutex mutex_;
  Time now_;
};

}  // namespace qualify::test
