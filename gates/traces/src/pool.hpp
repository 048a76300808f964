#pragma once

#include <memory>
#include <mutex>
#include <vector>

/// Internal to this module.
namespace qualify::traces {

/// What is dear to make and used by one thread at a time.
template <class T>
class Pool {
 public:
  [[nodiscard]] std::unique_ptr<T> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<T>();
    auto one = std::move(idle_.back());
    idle_.pop_back();
    return one;
  }
  void give(std::unique_ptr<T> one) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(one));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> idle_;
};

}  // namespace qualify::traces
