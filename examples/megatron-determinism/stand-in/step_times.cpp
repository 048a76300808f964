#include "step_times.hpp"

#include <cmath>

namespace stand_in {

StepTimes::StepTimes(bool deterministic, bool traced, std::uint64_t launch) : generator_(launch) {
  std::normal_distribution<double> luck(0.0, 0.0003);
  typical_ =
      1.5 * (deterministic ? 1.04 : 1.0) * (traced ? 1.004 : 1.0) * std::exp(luck(generator_));
}

float StepTimes::next() {
  return static_cast<float>(typical_ * std::exp(noise_(generator_)));
}

}  // namespace stand_in
