#include "support/step_simulation.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <stdexcept>

namespace qualify::test {

using namespace statistics;

namespace {

StepSeries series(std::string source, std::vector<double> seconds) {
  StepSeries s;
  s.source = std::move(source);
  s.seconds = std::move(seconds);
  s.step.resize(s.seconds.size());
  std::iota(s.step.begin(), s.step.end(), 1);
  return s;
}

OverheadRequest empty_request(const Scenario& scenario, const DecisionPolicy& policy) {
  OverheadRequest request;
  request.policy = policy;
  request.calendar.init_steps = 0;
  const auto pairs = static_cast<std::uint32_t>(scenario.pairs);
  request.looks = pairs == 6 ? std::vector<Look>{{4, .01}, {6, .04}}
                             : std::vector<Look>{{std::max(pairs, 3U), .05}};
  return request;
}

/// Fills the pairs from launches given as a function of (level, name).
template <class Launch>
OverheadRequest arrange(const Scenario& scenario, const DecisionPolicy& policy,
                        const Launch& launch) {
  OverheadRequest request = empty_request(scenario, policy);
  int index = 0;
  for (int i = 0; i < scenario.pairs; ++i) {
    LaunchPair pair;
    pair.name = "pair " + std::to_string(i + 1);
    pair.order = i % 2 == 0 ? Order::ab : Order::ba;
    for (int half = 0; half < 2; ++half) {
      const bool det = (half == 0) == (*pair.order == Order::ab);
      const double level = (det ? 1 + scenario.overhead : 1.0) *
                           std::exp(scenario.drift * index + (half == 1 ? scenario.period : 0));
      (det ? pair.deterministic : pair.nondeterministic) =
          launch(level, pair.name + (det ? " det" : " nondet"));
      ++index;
    }
    request.pairs.push_back(pair);
  }
  LaunchPair placebo;
  placebo.name = "placebo";
  placebo.deterministic = launch(std::exp(scenario.drift * index), "placebo 1");
  placebo.nondeterministic = launch(std::exp(scenario.drift * (index + 1)), "placebo 2");
  request.placebo.push_back(placebo);
  return request;
}

}  // namespace

OverheadRequest simulate(const Scenario& scenario, std::mt19937_64& random,
                         const DecisionPolicy& policy) {
  std::normal_distribution<double> normal(0, 1);
  std::uniform_real_distribution<double> uniform(0, 1);
  return arrange(scenario, policy, [&](double level, const std::string& name) {
    level *= std::exp(scenario.launch_noise * normal(random));
    std::vector<double> seconds;
    double state = normal(random);
    for (int i = 0; i < scenario.steps; ++i) {
      double s = 10 * level * std::exp(scenario.step_noise * state);
      if (uniform(random) < scenario.stall_rate) s *= scenario.stall_factor;
      seconds.push_back(s);
      state = scenario.rho * state + std::sqrt(1 - scenario.rho * scenario.rho) * normal(random);
    }
    return series(name, seconds);
  });
}

OverheadRequest real_windows(const std::vector<double>& values, const Scenario& scenario,
                             std::mt19937_64& random, const DecisionPolicy& policy) {
  const auto steps = static_cast<std::size_t>(scenario.steps);
  std::vector<std::size_t> starts(values.size() / (2 * steps));
  std::iota(starts.begin(), starts.end(), 0U);
  std::shuffle(starts.begin(), starts.end(), random);
  if (starts.size() < static_cast<std::size_t>(scenario.pairs) + 1) {
    throw std::runtime_error("series too short for the scenario");
  }
  std::size_t taken = 0;
  return arrange(scenario, policy, [&](double level, const std::string& name) {
    const std::size_t begin = starts[taken / 2] * 2 * steps + (taken % 2) * steps;
    ++taken;
    std::vector<double> seconds(values.begin() + static_cast<std::ptrdiff_t>(begin),
                                values.begin() + static_cast<std::ptrdiff_t>(begin + steps));
    for (double& s : seconds) s *= level;
    return series(name, seconds);
  });
}

std::vector<double> real_step_times(const std::string& name, std::size_t skip) {
  std::ifstream file(std::string(QUALIFY_TEST_DATA) + "/steps/" + name + ".csv");
  std::string line;
  std::getline(file, line);
  std::vector<double> values;
  while (std::getline(file, line)) {
    const double seconds = std::stod(line.substr(line.find(',') + 1));
    if (std::isfinite(seconds)) values.push_back(seconds);
  }
  if (values.size() <= skip) throw std::runtime_error("no step times: " + name);
  values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(skip));
  return values;
}

void Tally::add(const OverheadAnalysis& analysis, double true_overhead) {
  ++experiments;
  switch (analysis.verdict) {
    case OverheadVerdict::pass:
      ++pass;
      break;
    case OverheadVerdict::fail:
      ++fail;
      break;
    case OverheadVerdict::needs_decision:
      ++needs_decision;
      break;
    case OverheadVerdict::inconclusive:
      ++inconclusive;
      faulty += analysis.faults.empty() ? 0 : 1;
      moved += std::any_of(analysis.faults.begin(), analysis.faults.end(),
                           [](const Fault& f) { return f.code == "machine-moved"; })
                   ? 1
                   : 0;
      break;
  }
  if (!analysis.interval) return;
  ++estimated;
  const double truth = std::log1p(true_overhead);
  covered += analysis.interval->low <= truth && truth <= analysis.interval->high ? 1 : 0;
  above_upper += truth > analysis.estimate->upper_bound(0.05) ? 1 : 0;
  below_lower += truth < analysis.estimate->lower_bound(0.05) ? 1 : 0;
}

double Tally::coverage() const {
  return estimated == 0 ? 0 : static_cast<double>(covered) / estimated;
}

double Tally::rate(int count) const {
  return experiments == 0 ? 0 : static_cast<double>(count) / experiments;
}

double chance_of(OverheadVerdict verdict, const DecisionPolicy& policy, double overhead,
                 double deviation, double alpha, int k, int draws, std::mt19937_64& random) {
  std::normal_distribution<double> normal(std::log1p(overhead), deviation);
  // The quantile is the same for all draws: bounds are value -+ t * standard error.
  const double t = Estimate{0, 1, static_cast<double>(k - 1)}.upper_bound(alpha);
  std::vector<double> d(static_cast<std::size_t>(k));
  int hits = 0;
  for (int i = 0; i < draws; ++i) {
    for (double& v : d) v = normal(random);
    const Estimate e = paired_t(d).value();
    const Interval bounds{e.value - t * e.standard_error, e.value + t * e.standard_error};
    hits += decide(policy, bounds) == verdict ? 1 : 0;
  }
  return static_cast<double>(hits) / draws;
}

}  // namespace qualify::test
