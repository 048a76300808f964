#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace qualify {

/// Beyond this, threads cost memory (2 MiB each) and no disk is faster for it.
inline constexpr unsigned kMostJobs = 16;

/// 0 = as many as there are processors; at most kMostJobs.
[[nodiscard]] inline unsigned effective_jobs(unsigned jobs) {
  if (jobs == 0) jobs = std::max(1U, std::thread::hardware_concurrency());
  return std::min(jobs, kMostJobs);
}

/// Calls `work(i)` for every i below `count`, on at most `jobs` threads (see effective_jobs), in
/// order of i as threads come free, the first on the calling one. `work` must not throw.
template <class Work>
void for_each_index(std::size_t count, unsigned jobs, const Work& work) {
  jobs = effective_jobs(jobs);
  if (count == 0) return;
  std::atomic<std::size_t> next{1};
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> threads;
  try {
    for (unsigned i = 1; i < std::min<std::size_t>(jobs, count); ++i) threads.emplace_back(run);
  } catch (const std::system_error&) {
    // No more threads for this user: fewer do the same.
  }
  work(0);
  run();
}

}  // namespace qualify
