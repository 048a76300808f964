#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "qualify/statistics/overhead.hpp"

/// Launches with known truth, for the calibration of the performance gate.
namespace qualify::test {

/// What one experiment is made of. Noise is relative to the step time; shares are of 1.
struct Scenario {
  std::string name;
  double overhead = 0;          ///< true cost of the deterministic arm
  double step_noise = 0.01;     ///< marginal standard deviation of a step
  double rho = 0;               ///< its lag-1 autocorrelation (AR(1))
  double launch_noise = 0.002;  ///< standard deviation of a launch's level
  double stall_rate = 0;        ///< probability that a step stalls
  double stall_factor = 8;      ///< how long it then takes
  double drift = 0;             ///< change of the machine from one launch to the next
  double period = 0;            ///< cost of running second in a pair
  int pairs = 4;
  int steps = 50;
};

/// Alternating AB, BA pairs and one placebo pair, looks at 4 (.01) and 6 (.04) when pairs is 6,
/// one look otherwise.
[[nodiscard]] statistics::OverheadRequest simulate(const Scenario& scenario,
                                                   std::mt19937_64& random,
                                                   const statistics::DecisionPolicy& policy);

/// Real A/A material: `values` cut into windows of `steps`, `pairs` randomly chosen pairs of
/// neighbouring windows a request, no window twice. The deterministic arm is slowed by
/// `overhead`, and launch i by i * drift, second launches by `period`.
[[nodiscard]] statistics::OverheadRequest real_windows(const std::vector<double>& values,
                                                       const Scenario& scenario,
                                                       std::mt19937_64& random,
                                                       const statistics::DecisionPolicy& policy);

/// The second column of tests/data/steps/NAME.csv, without NaNs and the first `skip` rows.
[[nodiscard]] std::vector<double> real_step_times(const std::string& name, std::size_t skip);

/// What came of many experiments.
struct Tally {
  int experiments = 0;
  int pass = 0;
  int fail = 0;
  int needs_decision = 0;
  int inconclusive = 0;
  int faulty = 0;   ///< of them, inconclusive because of a fault
  int moved = 0;    ///< of them, by the placebo pair
  int covered = 0;  ///< 95% interval holds the truth
  int estimated = 0;
  int above_upper = 0;  ///< truth above U at 5% one-sided
  int below_lower = 0;
  void add(const statistics::OverheadAnalysis& analysis, double true_overhead);
  [[nodiscard]] double coverage() const;
  [[nodiscard]] double rate(int count) const;
};

/// Share of `verdict` when k log ratios are normal around ln(1 + overhead) with standard deviation
/// `deviation` and the paired t bounds have one-sided error `alpha`; by simulation.
[[nodiscard]] double chance_of(statistics::OverheadVerdict verdict,
                               const statistics::DecisionPolicy& policy, double overhead,
                               double deviation, double alpha, int k, int draws,
                               std::mt19937_64& random);

}  // namespace qualify::test
