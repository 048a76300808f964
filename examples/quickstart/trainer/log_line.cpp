#include "log_line.hpp"

#include <fmt/chrono.h>

namespace quickstart {

std::string log_time(std::chrono::system_clock::time_point now) {
  const auto since = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch());
  const auto whole = std::chrono::floor<std::chrono::seconds>(since);
  return fmt::format("[{:%Y-%m-%d %H:%M:%S}.{:06}]",
                     fmt::gmtime(static_cast<std::time_t>(whole.count())), (since - whole).count());
}

std::string log_line(const IterationFacts& f, std::chrono::system_clock::time_point now) {
  return fmt::format(
      " {} iteration {:8}/{:8} | consumed samples: {:12} |"
      " elapsed time per iteration (ms): {:.1f} | learning rate: {:.6E} |"
      " global batch size: {:5} | lm loss: {:.6E} | loss scale: 1.0 | grad norm: {:.3f} |"
      " num zeros: {}.0 | number of skipped iterations: {:3} | number of nan iterations: {:3} |",
      log_time(now), f.iteration, f.train_iters, f.consumed_samples, f.seconds * 1e3,
      f.learning_rate, f.global_batch_size, f.loss, f.grad_norm, f.num_zeros, 0, 0);
}

}  // namespace quickstart
