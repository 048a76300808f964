#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "qualify/scheduler/scheduler.hpp"

namespace qualify::test {

/// What the suite needs of a backend beside its interface.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual scheduler::Scheduler& scheduler() = 0;
  /// A reservation that is active, holds at least one node and nothing else uses.
  virtual std::string reservation() = 0;
  /// A request for one node whose job takes (about) `duration` and then exits with `code`.
  /// A new nonce each time.
  virtual scheduler::JobRequest request(Duration duration, int code) = 0;
  /// Lets a moment pass: really, or by the clock.
  virtual void pass() = 0;
  /// The shortest time limit that it keeps.
  virtual Duration shortest_limit() = 0;
};

struct MakeBackend {
  std::string name;
  std::function<std::unique_ptr<Backend>()> make;
  friend void PrintTo(const MakeBackend& self, std::ostream* out) { *out << self.name; }
};

class Conformance : public ::testing::TestWithParam<MakeBackend> {
 protected:
  void SetUp() override { backend_ = GetParam().make(); }
  void TearDown() override { backend_.reset(); }
  Backend& backend() { return *backend_; }
  scheduler::Scheduler& scheduler() { return backend_->scheduler(); }
  /// Asks until `done`; the last answer when that never comes (and the test has failed).
  scheduler::Job wait(const std::string& nonce,
                      const std::function<bool(const scheduler::Job&)>& done);

 private:
  std::unique_ptr<Backend> backend_;
};

}  // namespace qualify::test
