#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "qualify/scheduler/pace.hpp"
#include "qualify/scheduler/scheduler.hpp"

namespace qualify::scheduler {

/// Any number of runs, watched with one question a poll. Not thread-safe; the scheduler and the
/// clock must outlive it.
class JobWatch {
 public:
  JobWatch(Scheduler& scheduler, Clock& clock) : scheduler_(scheduler), clock_(clock) {}

  void add(const std::string& nonce) { seen_.try_emplace(nonce); }
  void remove(const std::string& nonce) { seen_.erase(nonce); }
  [[nodiscard]] std::size_t size() const { return seen_.size(); }

  /// A watched job that is not as it was: now there, in another state, or not known any more.
  struct Change {
    std::string nonce;
    std::optional<Job> job;  ///< nothing: the scheduler does not know it
  };
  /// Asks once. Errors: those of Scheduler::jobs(); they say nothing about any job.
  [[nodiscard]] Result<std::vector<Change>> poll();

  /// How long to wait before the next poll.
  [[nodiscard]] Duration pause() const { return pace_.pause(); }

 private:
  struct Seen {
    bool asked = false;
    std::optional<Digest> job;
  };
  Scheduler& scheduler_;
  Clock& clock_;
  Pace pace_;
  std::unordered_map<std::string, Seen> seen_;
};

}  // namespace qualify::scheduler
