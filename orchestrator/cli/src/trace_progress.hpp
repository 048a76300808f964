#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "session.hpp"

namespace qualify::cli {

/// "sealing: 512 of 3072 ranks" on one line of a terminal, nothing in a pipe. Threads may call it.
class RankProgress {
 public:
  RankProgress(Session& session, std::string what) : session_(session), what_(std::move(what)) {}
  ~RankProgress();
  RankProgress(const RankProgress&) = delete;
  RankProgress& operator=(const RankProgress&) = delete;
  /// Lives no longer than this object.
  [[nodiscard]] std::function<void(std::size_t, std::size_t)> reporter();

 private:
  Session& session_;
  std::string what_;
  std::mutex mutex_;
  std::size_t shown_ = 0;
};

}  // namespace qualify::cli
