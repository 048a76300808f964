#include "optimizer.hpp"

#include <cmath>
#include <numbers>

namespace quickstart {

double learning_rate(const Settings& settings, std::int64_t iteration) {
  const std::int64_t warmup = settings.lr_warmup_iters;
  if (iteration <= warmup) {
    return settings.lr * static_cast<double>(iteration) / static_cast<double>(warmup);
  }
  if (settings.train_iters <= warmup) {
    return settings.min_lr;
  }
  const double done =
      static_cast<double>(iteration - warmup) / static_cast<double>(settings.train_iters - warmup);
  return settings.min_lr +
         0.5 * (settings.lr - settings.min_lr) * (1.0 + std::cos(std::numbers::pi * done));
}

GradientFacts facts_of(std::span<const float> gradient) {
  double squares = 0;
  GradientFacts facts;
  for (const float value : gradient) {
    squares += static_cast<double>(value) * static_cast<double>(value);
    facts.zeros += value == 0.0F ? 1 : 0;
  }
  facts.norm = static_cast<float>(std::sqrt(squares));
  return facts;
}

void Adam::step(std::span<float> weights, std::span<const float> gradient, double lr, float scale,
                std::int64_t step) {
  constexpr float kBeta1 = 0.9F;
  constexpr float kBeta2 = 0.99F;
  constexpr float kEpsilon = 1e-8F;
  // The bias corrections, in double: beta^step loses float32's digits near 1.
  const auto count = static_cast<double>(step);
  const auto rate = static_cast<float>(lr / (1.0 - std::pow(0.9, count)));
  const auto unbias = static_cast<float>(1.0 / (1.0 - std::pow(0.99, count)));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float g = gradient[i] * scale;
    mean_[i] = kBeta1 * mean_[i] + (1.0F - kBeta1) * g;
    square_[i] = kBeta2 * square_[i] + (1.0F - kBeta2) * g * g;
    weights[i] -= rate * mean_[i] / (std::sqrt(square_[i] * unbias) + kEpsilon);
  }
}

}  // namespace quickstart
