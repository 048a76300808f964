#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace quickstart {

/// What one iteration came to, as all ranks agree on it.
struct IterationFacts {
  std::int64_t iteration = 0;  ///< 1-based
  std::int64_t train_iters = 0;
  std::int64_t consumed_samples = 0;
  unsigned global_batch_size = 0;
  double seconds = 0;  ///< of the iteration, monotonic clock
  double learning_rate = 0;
  float loss = 0;
  float grad_norm = 0;
  std::int64_t num_zeros = 0;
  std::vector<float> rank_seconds;  ///< by rank: its own work, before it waited for the others
};

/// "[2026-11-30 04:07:34.046496]", UTC.
[[nodiscard]] std::string log_time(std::chrono::system_clock::time_point now);

/// Megatron-LM's line for one iteration, without the newline.
[[nodiscard]] std::string log_line(const IterationFacts& facts,
                                   std::chrono::system_clock::time_point now);

}  // namespace quickstart
