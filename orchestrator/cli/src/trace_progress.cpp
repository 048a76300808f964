#include "trace_progress.hpp"

namespace qualify::cli {

RankProgress::~RankProgress() {
  if (shown_ > 0) session_.err << "\r\033[K" << std::flush;
}

std::function<void(std::size_t, std::size_t)> RankProgress::reporter() {
  if (!session_.err_is_terminal) return {};
  return [this](std::size_t done, std::size_t of) {
    const std::lock_guard lock(mutex_);
    if (done <= shown_ || (done < of && done < shown_ + of / 100 + 1)) return;
    shown_ = done;
    session_.err << '\r' << what_ << ": " << done << " of " << of << " ranks" << std::flush;
  };
}

}  // namespace qualify::cli
