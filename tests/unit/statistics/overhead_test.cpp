#include "qualify/statistics/overhead.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "qualify/statistics/location.hpp"
#include "support/step_simulation.hpp"

namespace qualify::statistics {
namespace {

DecisionPolicy change() {
  return decision_policy("change-overhead").value();
}

/// Four quiet AB/BA pairs and a placebo with the given true overhead.
OverheadRequest quiet(double overhead, int pairs = 4) {
  test::Scenario s;
  s.overhead = overhead;
  s.step_noise = 0.002;
  s.launch_noise = 0.0005;
  s.pairs = pairs;
  std::mt19937_64 random(42);
  return test::simulate(s, random, change());
}

bool has(const OverheadAnalysis& a, const std::string& code) {
  return std::any_of(a.faults.begin(), a.faults.end(),
                     [&](const Fault& f) { return f.code == code; });
}

Interval ratio_bounds(double low, double high) {
  return {std::log(low), std::log(high)};
}

TEST(Decide, FollowsTheTable) {
  const auto p = change();
  EXPECT_EQ(decide(p, ratio_bounds(0.99, 1.0099)), OverheadVerdict::pass);
  EXPECT_EQ(decide(p, ratio_bounds(1.0701, 1.20)), OverheadVerdict::fail);
  EXPECT_EQ(decide(p, ratio_bounds(1.011, 1.069)), OverheadVerdict::needs_decision);
  EXPECT_EQ(decide(p, ratio_bounds(1.009, 1.02)), OverheadVerdict::inconclusive);
  EXPECT_EQ(decide(p, ratio_bounds(1.02, 1.08)), OverheadVerdict::inconclusive);
  EXPECT_EQ(decide(p, ratio_bounds(0.9, 1.2)), OverheadVerdict::inconclusive);
  EXPECT_EQ(decide(p, ratio_bounds(0.99, 1.01)), OverheadVerdict::inconclusive);  // the line itself
}

TEST(Decide, ModeOverheadHasTheProductionGoalAsItsLine) {
  const auto p = decision_policy("mode-overhead").value();
  EXPECT_EQ(decide(p, ratio_bounds(1.04, 1.09)), OverheadVerdict::pass);
  EXPECT_EQ(decide(p, ratio_bounds(1.11, 1.2)), OverheadVerdict::fail);
  EXPECT_EQ(decide(p, ratio_bounds(1.09, 1.11)), OverheadVerdict::inconclusive);
  EXPECT_FALSE(decision_policy("lenient"));
}

TEST(Overhead, EffectsLandInTheirRows) {
  EXPECT_EQ(analyse(quiet(0.003)).verdict, OverheadVerdict::pass);
  EXPECT_EQ(analyse(quiet(0.03)).verdict, OverheadVerdict::needs_decision);
  EXPECT_EQ(analyse(quiet(0.09)).verdict, OverheadVerdict::fail);
  const auto a = analyse(quiet(0.046));
  EXPECT_NEAR(std::exp(a.estimate->value), 1.046, 0.002);
  EXPECT_LT(a.interval->low, std::log(1.046));
  EXPECT_GT(a.interval->high, std::log(1.046));
  EXPECT_EQ(*a.sign_flip_p, 0.125);  // the smallest that four pairs can give
}

TEST(Overhead, GoalsAreReportedBesideTheVerdict) {
  const auto a = analyse(quiet(0.07));
  ASSERT_EQ(a.goals.size(), 2U);
  EXPECT_EQ(a.goals[0].goal.name, "production");
  EXPECT_EQ(a.goals[0].met, true);
  EXPECT_EQ(a.goals[1].met, false);
}

TEST(Overhead, OneOrTwoPairsNeverDecide) {
  for (const int k : {1, 2, 3}) {
    for (const double overhead : {0.0, 0.03, 0.30}) {
      auto request = quiet(overhead, 4);
      request.pairs.resize(static_cast<std::size_t>(k));
      const auto a = analyse(request);
      EXPECT_EQ(a.verdict, OverheadVerdict::inconclusive) << k << " " << overhead;
      EXPECT_TRUE(a.faults.empty()) << a.reasons[0];
      ASSERT_TRUE(a.further_pairs) << k << " " << overhead;
      EXPECT_EQ(*a.further_pairs, static_cast<std::uint32_t>(4 - k));
    }
  }
}

TEST(Overhead, OnlyRegisteredLooksDecide) {
  auto request = quiet(0.09, 6);
  EXPECT_EQ(request.looks.size(), 2U);
  EXPECT_EQ(analyse(request).verdict, OverheadVerdict::fail);
  EXPECT_EQ(analyse(request).alpha, 0.04);
  request.pairs.resize(5);
  const auto between = analyse(request);
  EXPECT_EQ(between.verdict, OverheadVerdict::inconclusive);
  EXPECT_EQ(between.next_look, 6U);
  request.pairs.resize(4);
  EXPECT_EQ(analyse(request).alpha, 0.01);
  request.looks = {{4, .04}, {6, .04}};
  EXPECT_TRUE(has(analyse(request), "bad-looks"));
}

TEST(Overhead, SixPairsUseTheCrossoverEstimate) {
  auto request = quiet(0.02, 6);
  // running second costs 2%: AB pairs see it as cheaper, BA pairs as dearer
  for (auto& pair : request.pairs) {
    auto& second = *pair.order == Order::ab ? pair.nondeterministic : pair.deterministic;
    for (double& s : second.seconds) s *= 1.02;
  }
  const auto a = analyse(request);
  EXPECT_TRUE(a.crossover_used);
  EXPECT_EQ(a.estimate->df, 4);
  EXPECT_NEAR(a.estimate->value, std::log(1.02), 0.001);
  EXPECT_NEAR(a.period->value, -std::log(1.02), 0.001);
  EXPECT_EQ(a.verdict, OverheadVerdict::needs_decision);
}

TEST(Overhead, AnUndecidedEstimateSaysHowManyPairsWouldDecide) {
  auto request = quiet(0.006);
  const double factors[] = {1.004, 0.996, 1.006, 0.994};
  for (std::size_t i = 0; i < 4; ++i) {
    for (double& s : request.pairs[i].deterministic.seconds) s *= factors[i];
  }
  const auto a = analyse(request);
  ASSERT_EQ(a.verdict, OverheadVerdict::inconclusive) << a.reasons[0];
  ASSERT_TRUE(a.faults.empty()) << a.reasons[0];
  ASSERT_TRUE(a.further_pairs);
  EXPECT_GT(*a.further_pairs, 0U);
  EXPECT_EQ((4 + *a.further_pairs) % 2, 0U);
}

TEST(PairsToDecide, GrowsWithNoiseAndIsAbsentOnTheLine) {
  const auto p = change();
  EXPECT_EQ(pairs_to_decide(p, 0, 0.001, 0.05, 4), 4U);
  const auto noisy = pairs_to_decide(p, 0, 0.02, 0.05, 4);
  ASSERT_TRUE(noisy);
  EXPECT_GT(*noisy, 8U);
  EXPECT_FALSE(pairs_to_decide(p, std::log(1.01), 0.005, 0.05, 4));
}

TEST(Placebo, AMovingMachineMakesTheVerdictInconclusive) {
  auto request = quiet(0.09);
  for (double& s : request.placebo[0].nondeterministic.seconds) s *= 1.03;
  const auto a = analyse(request);
  EXPECT_EQ(a.verdict, OverheadVerdict::inconclusive);
  EXPECT_TRUE(has(a, "machine-moved"));
  request.placebo.clear();
  EXPECT_EQ(analyse(request).verdict, OverheadVerdict::fail);
  request.placebo_required = true;
  EXPECT_TRUE(has(analyse(request), "no-placebo"));
}

TEST(Placebo, TwoThatMovedApartDoNotCancel) {
  auto request = quiet(0);
  request.placebo.push_back(request.placebo[0]);
  for (StepSeries* one :
       {&request.placebo[1].deterministic, &request.placebo[1].nondeterministic}) {
    one->source += " again";
    for (double& s : one->seconds) s *= 1.0001;
  }
  ASSERT_FALSE(has(analyse(request), "machine-moved"));
  for (double& s : request.placebo[0].nondeterministic.seconds) s *= 1.05;
  for (double& s : request.placebo[1].deterministic.seconds) s *= 1.05;
  EXPECT_TRUE(has(analyse(request), "machine-moved"));
}

TEST(BadInput, TimesThatWerePrintedTooCoarsely) {
  auto request = quiet(0);
  ASSERT_EQ(analyse(request).verdict, OverheadVerdict::pass);
  const double typical = median(request.pairs[2].deterministic.seconds).value();
  request.pairs[2].deterministic.resolution = 0.0004 * typical;
  request.pairs[2].nondeterministic.resolution = 0.0004 * typical;
  EXPECT_FALSE(has(analyse(request), "coarse-times"));
  request.pairs[2].nondeterministic.resolution = 0.0008 * typical;
  const auto a = analyse(request);
  EXPECT_TRUE(has(a, "coarse-times"));
  EXPECT_EQ(a.verdict, OverheadVerdict::inconclusive);
}

TEST(BadInput, TheSameRunAsBothArms) {
  auto request = quiet(0.0);
  request.pairs[2].nondeterministic.seconds = request.pairs[2].deterministic.seconds;
  EXPECT_TRUE(has(analyse(request), "same-run"));
  request = quiet(0.0);
  request.pairs[2].nondeterministic.marks = request.pairs[0].deterministic.marks = "x";
  const auto a = analyse(request);
  EXPECT_TRUE(has(a, "same-run"));
  EXPECT_EQ(a.verdict, OverheadVerdict::inconclusive);
}

TEST(BadInput, MillisecondsAmongSeconds) {
  auto request = quiet(0.0);
  for (double& s : request.pairs[1].deterministic.seconds) s *= 1000;
  const auto a = analyse(request);
  EXPECT_TRUE(has(a, "units-mixed"));
  EXPECT_EQ(a.verdict, OverheadVerdict::inconclusive);
}

TEST(BadInput, SwappedArms) {
  auto request = quiet(0.0);
  request.pairs[0].deterministic.says_deterministic = false;
  request.pairs[0].nondeterministic.says_deterministic = true;
  EXPECT_TRUE(has(analyse(request), "arms-swapped"));
}

TEST(BadInput, AllPairsInOneOrder) {
  auto request = quiet(0.0);
  for (auto& pair : request.pairs) pair.order = Order::ab;
  EXPECT_TRUE(has(analyse(request), "unbalanced-orders"));
  for (auto& pair : request.pairs) pair.order.reset();
  const auto a = analyse(request);
  EXPECT_EQ(a.verdict, OverheadVerdict::pass);
  EXPECT_FALSE(a.limits.empty());
}

TEST(BadInput, AFaultyPairIsNotDropped) {
  auto request = quiet(0.0, 6);
  request.pairs[3].deterministic.seconds[20] = NAN;
  const auto a = analyse(request);
  EXPECT_EQ(a.verdict, OverheadVerdict::inconclusive);
  EXPECT_TRUE(has(a, "bad-time"));
  EXPECT_FALSE(a.estimate);
}

TEST(BadInput, AShiftInOneWindow) {
  auto request = quiet(0.0);
  auto& s = request.pairs[1].deterministic.seconds;
  for (std::size_t i = 30; i < s.size(); ++i) s[i] *= 1.04;
  const auto a = analyse(request);
  EXPECT_EQ(a.verdict, OverheadVerdict::inconclusive);
  EXPECT_TRUE(has(a, "shift-in-window"));
}

TEST(BadInput, NoPairs) {
  auto request = quiet(0.0);
  request.pairs.clear();
  EXPECT_TRUE(has(analyse(request), "no-pairs"));
}

TEST(OverheadJson, HoldsNoNaNAndNamesTheVerdict) {
  for (const int k : {0, 1, 4}) {
    auto request = quiet(0.03);
    request.pairs.resize(static_cast<std::size_t>(k));
    const Json value = to_json(analyse(request));
    EXPECT_EQ(value.at("verdict"), k == 4 ? "needs-decision" : "inconclusive");
    EXPECT_TRUE(canonical_json(value)) << k;
    EXPECT_EQ(value.at("pairs").size(), static_cast<std::size_t>(k));
  }
}

}  // namespace
}  // namespace qualify::statistics
