#include "support/fake_clock.hpp"

namespace qualify::test {

FakeClock::FakeClock(Time start) : now_(start) {}

Time FakeClock::now() const {
  const std::scoped_lock lock(mutex_);
  return now_;
}

void FakeClock::sleep_for(Duration duration) {
  const std::scoped_lock lock(mutex_);
  now_ += duration;
}

void FakeClock::set(Time time) {
  const std::scoped_lock lock(mutex_);
  now_ = time;
}

}  // namespace qualify::test
