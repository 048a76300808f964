#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "settings.hpp"

namespace quickstart {

/// Linear warm-up to `lr`, then half a cosine down to `min_lr` at the last iteration.
/// iteration: 1-based.
[[nodiscard]] double learning_rate(const Settings& settings, std::int64_t iteration);

struct GradientFacts {
  float norm = 0;          ///< L2 over all elements; NaN or infinite when the gradient is
  std::int64_t zeros = 0;  ///< elements that are exactly 0
};
[[nodiscard]] GradientFacts facts_of(std::span<const float> gradient);

/// Adam in float32 (Kingma & Ba, ICLR 2015, algorithm 1), one replica; not thread-safe.
class Adam {
 public:
  explicit Adam(std::size_t size) : mean_(size), square_(size) {}

  /// step: 1-based number of this update. The gradient is multiplied by `scale` first (clipping).
  void step(std::span<float> weights, std::span<const float> gradient, double lr, float scale,
            std::int64_t step);

  [[nodiscard]] std::span<float> mean() { return mean_; }
  [[nodiscard]] std::span<float> square() { return square_; }

 private:
  std::vector<float> mean_;
  std::vector<float> square_;
};

}  // namespace quickstart
