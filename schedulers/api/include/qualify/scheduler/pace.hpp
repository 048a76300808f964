#pragma once

#include <algorithm>

#include "qualify/base/clock.hpp"

namespace qualify::scheduler {

/// How often a scheduler is asked, so that it never suffers from being watched. Pure.
///
///   after a change                 50 ms: runs of seconds are seen to start and end
///   while nothing changes          x 1.25 each time, up to 2 s
///   a slow answer                  at least 20 times what the answer took, up to 60 s: whoever
///                                  watches takes at most a twentieth of a controller's time
///   no answer                      doubled each time, from 2 s up to 60 s
class Pace {
 public:
  static constexpr Duration kFirst = std::chrono::milliseconds(50);
  static constexpr Duration kSlowest = std::chrono::seconds(2);
  static constexpr Duration kLongest = std::chrono::seconds(60);

  /// Notes an answer and how long it took.
  void answered(bool changed, Duration took) {
    quiet_ = changed ? kFirst : std::min(quiet_ * 5 / 4, kSlowest);
    pause_ = std::min(std::max(quiet_, took * 20), kLongest);
  }
  void failed() { pause_ = pause_ < kSlowest ? kSlowest : std::min(pause_ * 2, kLongest); }
  /// How long to wait before the next question.
  [[nodiscard]] Duration pause() const { return pause_; }

 private:
  Duration quiet_ = kFirst;
  Duration pause_ = kFirst;
};

}  // namespace qualify::scheduler
