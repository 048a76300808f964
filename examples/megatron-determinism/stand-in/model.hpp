#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace stand_in {

inline constexpr std::size_t kParameters = 32;

using Values = std::array<float, kParameters>;

/// What one iteration came to.
struct Iteration {
  Values activations{};  ///< of this rank's own share
  Values gradient{};     ///< of this rank's own share
  Values sum{};          ///< over all shares, as every rank has it
  float loss = 0;
  float gradient_norm = 0;
  float zeros = 0;  ///< gradient elements that are exactly 0
};

/// A least-squares model that is trained for real, in float32, by every rank for itself: the
/// gradients of all shares are added up, in their order, or, in `arrival` order, in one that is
/// another in each launch. Float addition is not associative, so that the bits part as they do when
/// a reduction adds in the order in which its parts get there.
class Model {
 public:
  /// `shares` of the global batch, each with a gradient of its own. `arrival`: absent adds in
  /// order.
  Model(std::uint64_t seed, std::size_t shares, std::optional<std::uint64_t> arrival);

  /// `own` is this rank's share; `wrong` is a share whose activations come out one bit off.
  [[nodiscard]] Iteration step(std::size_t own, std::optional<std::size_t> wrong, float rate);

 private:
  std::vector<Values> gradients_;  ///< one a share
  std::mt19937_64 data_;
  std::optional<std::mt19937_64> arrival_;
  Values parameters_{};
  Values target_{};
};

}  // namespace stand_in
