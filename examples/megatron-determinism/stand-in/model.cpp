#include "model.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace stand_in {
namespace {

/// In [-1, 1), from the generator's bits alone: the library's distributions are not the same
/// everywhere.
float uniform(std::mt19937_64& generator) {
  return static_cast<float>(static_cast<double>(generator() >> 11U) * 0x1p-52 - 1.0);
}

/// A bit high enough that no later rounding swallows it.
float flip_bit(float value) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ 0x1000U);
}

}  // namespace

Model::Model(std::uint64_t seed, std::size_t shares, std::optional<std::uint64_t> arrival)
    : gradients_(shares), data_(seed) {
  if (arrival) arrival_.emplace(*arrival);
  for (float& value : target_) value = 8 * uniform(data_);
}

Iteration Model::step(std::size_t own, std::optional<std::size_t> wrong, float rate) {
  Iteration result;
  std::vector<float> losses(gradients_.size());
  for (std::size_t share = 0; share < gradients_.size(); ++share) {
    Values activations;
    Values inputs;
    for (std::size_t i = 0; i < kParameters; ++i) {
      inputs[i] = uniform(data_);
      // Inputs that a ReLU would have cut: their gradients are exactly 0.
      if (inputs[i] < -0.75F) inputs[i] = 0;
      activations[i] = inputs[i] * parameters_[i];
    }
    if (wrong == share) activations[0] = flip_bit(activations[0]);
    float error = 0;
    for (std::size_t i = 0; i < kParameters; ++i) error += activations[i] - inputs[i] * target_[i];
    for (std::size_t i = 0; i < kParameters; ++i) gradients_[share][i] = error * inputs[i];
    losses[share] = error * error;
    if (share != own) continue;
    result.activations = activations;
    result.gradient = gradients_[share];
  }
  std::vector<std::size_t> order(gradients_.size());
  std::iota(order.begin(), order.end(), 0);
  if (arrival_) std::shuffle(order.begin(), order.end(), *arrival_);
  for (const std::size_t share : order) {
    for (std::size_t i = 0; i < kParameters; ++i) result.sum[i] += gradients_[share][i];
    result.loss += losses[share];
  }
  const auto count = static_cast<float>(gradients_.size());
  float squares = 0;
  for (std::size_t i = 0; i < kParameters; ++i) {
    squares += result.sum[i] * result.sum[i];
    if (result.sum[i] == 0) result.zeros += 1;
    parameters_[i] -= rate / count * result.sum[i];
  }
  result.loss /= count;
  result.gradient_norm = std::sqrt(squares);
  return result;
}

}  // namespace stand_in
