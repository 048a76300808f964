// Does the gate keep its promises? Truth is known here: simulated launches, and A/A windows of real
// series with injected effects. The table for docs/gates/performance.md comes from
// tests/bench/calibration.
#include <gtest/gtest.h>

#include <cmath>

#include "support/step_simulation.hpp"

namespace qualify::statistics {
namespace {

const char* const kSeries[] = {"dsv3_proxy_gb200_release", "gpt3_weekly_tp2pp2_gb200"};

DecisionPolicy change() {
  return decision_policy("change-overhead").value();
}

test::Tally real(const char* name, double overhead, int experiments, double drift, double period) {
  const auto values = test::real_step_times(name, 20);
  test::Scenario s;
  s.steps = 30;
  s.overhead = overhead;
  s.drift = drift;
  s.period = period;
  std::mt19937_64 random(7);
  test::Tally tally;
  for (int i = 0; i < experiments; ++i) {
    tally.add(analyse(test::real_windows(values, s, random, change())), overhead);
  }
  return tally;
}

TEST(Calibration, RealWindowsAgainstThemselvesAreNeverABlocker) {
  for (const char* name : kSeries) {
    const auto t = real(name, 0, 150, 0, 0);  // 600 window pairs
    EXPECT_EQ(t.fail, 0) << name;
    EXPECT_EQ(t.needs_decision, 0) << name;
    EXPECT_GE(t.coverage(), 0.93) << name;
    EXPECT_GE(t.rate(t.pass), 0.40) << name;
  }
}

TEST(Calibration, RealWindowsPassAtTheRateThatTheirNoisePredicts) {
  // The noise of real pairs has long tails, so what is expected comes from drawing fours from all
  // of them, not from a normal law.
  for (const char* name : kSeries) {
    const auto values = test::real_step_times(name, 20);
    test::Scenario s;
    s.steps = 30;
    std::mt19937_64 random(8);
    std::vector<double> pool;
    int judged = 0;
    int passed = 0;
    for (int i = 0; i < 300; ++i) {
      const auto a = analyse(test::real_windows(values, s, random, change()));
      if (!a.faults.empty()) continue;
      ++judged;
      passed += a.verdict == OverheadVerdict::pass ? 1 : 0;
      for (const auto& pair : a.pairs) pool.push_back(*pair.log_ratio);
    }
    std::uniform_int_distribution<std::size_t> any(0, pool.size() - 1);
    constexpr int draws = 4000;
    int expected = 0;
    for (int i = 0; i < draws; ++i) {
      std::vector<double> d;
      for (int k = 0; k < 4; ++k) d.push_back(pool[any(random)]);
      expected += paired_t(d).value().upper_bound(0.05) < std::log(1.01) ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(passed) / judged, static_cast<double>(expected) / draws, 0.08)
        << name;
  }
}

TEST(Calibration, InjectedEffectsLandInTheirRowsDespiteDriftAndPeriod) {
  for (const char* name : kSeries) {
    const auto small = real(name, 0.003, 100, 0.0005, 0.001);
    EXPECT_GT(small.pass, 0) << name;
    EXPECT_EQ(small.fail + small.needs_decision, 0) << name;
    const auto middle = real(name, 0.03, 100, 0.0005, 0.001);
    EXPECT_GE(middle.rate(middle.needs_decision), 0.5) << name;
    EXPECT_EQ(middle.fail + middle.pass, 0) << name;
    const auto large = real(name, 0.09, 100, 0.0005, 0.001);
    EXPECT_GE(large.rate(large.fail), 0.5) << name;
    EXPECT_EQ(large.pass + large.needs_decision, 0) << name;
    for (const auto& t : {small, middle, large}) EXPECT_GE(t.coverage(), 0.93) << name;
  }
}

TEST(Calibration, SimulatedLaunchesKeepTheirErrorRates) {
  std::uint64_t seed = 1;
  for (const double rho : {0.0, 0.5, 0.9}) {
    for (const int pairs : {4, 6}) {
      for (const double overhead : {0.0, 0.05}) {
        test::Scenario s;
        s.rho = rho;
        s.stall_rate = 0.02;
        s.drift = 0.0002;
        s.period = 0.0005;
        s.pairs = pairs;
        s.overhead = overhead;
        std::mt19937_64 random(seed++);
        test::Tally t;
        for (int i = 0; i < 400; ++i) t.add(analyse(test::simulate(s, random, change())), overhead);
        // 400 experiments: binomial standard error 1.1%; nominal 95%
        EXPECT_GE(t.coverage(), 0.915) << rho << ' ' << pairs << ' ' << overhead;
        EXPECT_LE(t.coverage(), 0.985) << rho << ' ' << pairs << ' ' << overhead;
        EXPECT_LE(t.rate(t.fail), 0.01) << rho << ' ' << pairs << ' ' << overhead;
        if (overhead > 0) {
          EXPECT_EQ(t.pass, 0) << rho << ' ' << pairs;
        }
      }
    }
  }
}

TEST(Calibration, PassOnTheLineIsAsRareAsPromised) {
  // True overhead exactly 1%: pass is an error, at most 5% over both looks.
  test::Scenario s;
  s.overhead = 0.01;
  s.pairs = 6;
  std::mt19937_64 random(99);
  int errors = 0;
  constexpr int experiments = 1000;
  for (int i = 0; i < experiments; ++i) {
    auto request = test::simulate(s, random, change());
    request.placebo.clear();
    auto early = request;
    early.pairs.resize(4);
    const auto first = analyse(early);
    const auto verdict =
        first.verdict != OverheadVerdict::inconclusive ? first.verdict : analyse(request).verdict;
    errors += verdict == OverheadVerdict::pass ? 1 : 0;
  }
  EXPECT_LE(errors, 70);  // 50 expected at most; 3 standard errors are 21
  EXPECT_GE(errors, 10);  // a gate that never passes would be no proof
}

}  // namespace
}  // namespace qualify::statistics
