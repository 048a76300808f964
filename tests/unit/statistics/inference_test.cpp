#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "qualify/statistics/distributions.hpp"
#include "qualify/statistics/exact.hpp"
#include "qualify/statistics/paired.hpp"
#include "qualify/statistics/planning.hpp"

namespace qualify::statistics {
namespace {

using Values = std::vector<double>;

// R 4.2.2, data set `sleep` (Student 1908): extra hours of sleep under two drugs.
const Values kSleep1{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
const Values kSleep2{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};

Values minus(const Values& x, const Values& y) {
  Values d;
  for (std::size_t i = 0; i < x.size(); ++i) d.push_back(x[i] - y[i]);
  return d;
}

TEST(PairedT, KnownAnswerOfStudentsSleepData) {
  const auto t = paired_t(minus(kSleep1, kSleep2)).value();
  EXPECT_NEAR(t.t(), -4.06212768338, 1e-9);
  EXPECT_NEAR(t.two_sided_p(), 0.00283289019738, 1e-9);
  EXPECT_NEAR(t.interval(0.95).low, -2.45988576328, 1e-9);
  EXPECT_NEAR(t.interval(0.95).high, -0.70011423672, 1e-9);
}

TEST(PairedT, OneSidedBoundsAreTheEndsOfTheNinetyPercentInterval) {
  const auto t = paired_t(minus(kSleep1, kSleep2)).value();
  EXPECT_DOUBLE_EQ(t.lower_bound(0.05), t.interval(0.90).low);
  EXPECT_DOUBLE_EQ(t.upper_bound(0.05), t.interval(0.90).high);
}

TEST(PairedT, HalfWidthFactorsOfFewPairs) {
  // facts: t.975/sqrt k and t.95/sqrt k, three decimals
  const double table[][3] = {
      {3, 2.484, 1.686}, {4, 1.591, 1.177}, {5, 1.242, 0.953}, {6, 1.049, 0.823}};
  for (const auto& row : table) {
    EXPECT_NEAR(student_quantile(0.975, row[0] - 1) / std::sqrt(row[0]), row[1], 5e-4);
    EXPECT_NEAR(student_quantile(0.95, row[0] - 1) / std::sqrt(row[0]), row[2], 5.5e-4);
  }
}

TEST(PairedT, OnePairHasNoInterval) {
  EXPECT_FALSE(paired_t(Values{0.01}));
}

TEST(Crossover, SeparatesAnEffectFromWhatRunningSecondCosts) {
  // effect 3, period +1 where the deterministic arm runs first
  const auto c = crossover(Values{4.1, 3.9}, Values{2.1, 1.9}).value();
  EXPECT_NEAR(c.effect.value, 3, 1e-12);
  EXPECT_NEAR(c.period.value, 1, 1e-12);
  EXPECT_EQ(c.effect.df, 2);
  // pooled s^2 = 0.04 / 2, SE = s / 2 * sqrt(1/2 + 1/2)
  EXPECT_NEAR(c.effect.standard_error, std::sqrt(0.02) / 2, 1e-12);
}

TEST(Crossover, BalancedEstimateIsThePlainMean) {
  const Values all{0.1, 0.4, 0.2, 0.7};
  const auto c = crossover(Values{0.1, 0.2}, Values{0.4, 0.7}).value();
  EXPECT_NEAR(c.effect.value, paired_t(all).value().value, 1e-15);
}

TEST(Crossover, NeedsBothOrders) {
  EXPECT_FALSE(crossover(Values{1, 2, 3}, Values{}));
  EXPECT_FALSE(crossover(Values{1}, Values{2}));
}

TEST(Fieller, KnownRatioOfTheCityData) {
  // boot::city, populations 1920 and 1930
  const Values u{138, 93, 61, 179, 48, 37, 29, 23, 30, 2};
  const Values x{143, 104, 69, 260, 75, 63, 50, 48, 111, 50};
  const auto r = fieller(x, u, 0.95).value();
  EXPECT_NEAR(r.ratio, 1.5203125, 1e-9);
  ASSERT_TRUE(r.interval);
  // The ends solve the defining equation: the paired t statistic of x - rho u is t.975.
  for (const double rho : {r.interval->low, r.interval->high}) {
    Values d;
    for (std::size_t i = 0; i < x.size(); ++i) d.push_back(x[i] - rho * u[i]);
    EXPECT_NEAR(std::fabs(paired_t(d).value().t()), student_quantile(0.975, 9), 1e-9);
  }
  EXPECT_LT(r.interval->low, r.ratio);
  EXPECT_GT(r.interval->high, r.ratio);
}

TEST(Fieller, SaysWhenTheSetIsNotAnInterval) {
  const auto r = fieller(Values{1, 2, 3}, Values{-3, 1, 2.5}, 0.95).value();
  EXPECT_FALSE(r.interval);
}

TEST(SignFlip, SmallestPValuesOfFewPairs) {
  for (int k = 3; k <= 6; ++k) {
    Values same(static_cast<std::size_t>(k), 0.05);
    for (std::size_t i = 0; i < same.size(); ++i) same[i] += 0.001 * static_cast<double>(i);
    EXPECT_DOUBLE_EQ(sign_flip_p(same).value(), std::ldexp(1.0, 1 - k));
  }
}

TEST(SignFlip, TiesCountDespiteRounding) {
  // every flip of {0.1, 0.2, 0.3} with |sum| >= 0 counts, and 0.1 + 0.2 - 0.3 is not exactly 0
  EXPECT_DOUBLE_EQ(sign_flip_p(Values{0.1, 0.2, -0.3}).value(), 1.0);
  EXPECT_FALSE(sign_flip_p(Values(21, 1.0)));
  EXPECT_FALSE(sign_flip_p(Values{}));
}

TEST(SignedRank, KnownAnswerOfTheDepressionScale) {
  const Values x{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
  const Values y{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
  const auto s = signed_rank(minus(x, y), 0.95).value();
  EXPECT_EQ(s.v, 40);
  EXPECT_NEAR(s.p, 0.0390625, 1e-9);
  EXPECT_NEAR(s.pseudo_median, 0.46, 1e-9);
  EXPECT_NEAR(s.interval.low, 0.010, 1e-9);
  EXPECT_NEAR(s.interval.high, 0.786, 1e-9);
  EXPECT_GE(s.achieved, 0.95);
}

TEST(SignedRank, RefusesTiesAndZeros) {
  EXPECT_FALSE(signed_rank(Values{1, -1, 2}, 0.95));
  EXPECT_FALSE(signed_rank(Values{0, 1, 2}, 0.95));
}

TEST(RankSum, FewSamplesCanSayLittle) {
  // benchstat: 5 against 5 gives p = 0.008 at best, 3 against 3 can't detect anything at 0.05
  EXPECT_NEAR(rank_sum_p(Values{1, 2, 3, 4, 5}, Values{6, 7, 8, 9, 10}).value(), 2.0 / 252, 1e-9);
  EXPECT_LT(rank_sum_p(Values{1, 2, 3, 4}, Values{5, 6, 7, 8}).value(), 0.05);
  EXPECT_GE(rank_sum_p(Values{1, 2, 3}, Values{4, 5, 6}).value(), 0.05);
}

TEST(RankSum, RangeCoversTheMedianOnlyFromSixOn) {
  EXPECT_EQ(range_coverage_of_median(3), 0.75);
  EXPECT_EQ(range_coverage_of_median(4), 0.875);
  EXPECT_EQ(range_coverage_of_median(5), 0.9375);
  EXPECT_EQ(range_coverage_of_median(6), 0.96875);
}

TEST(Looks, RegisteredErrorsMayNotExceedTheTotal) {
  EXPECT_TRUE(check_looks(std::vector<Look>{{4, .01}, {6, .04}}, 0.05));
  EXPECT_FALSE(check_looks(std::vector<Look>{{4, .02}, {6, .04}}, 0.05));
  EXPECT_FALSE(check_looks(std::vector<Look>{{6, .01}, {4, .04}}, 0.05));
  EXPECT_FALSE(check_looks(std::vector<Look>{{2, .05}}, 0.05));
  EXPECT_FALSE(check_looks(std::vector<Look>{}, 0.05));
}

TEST(KaliberaJones, KnownAnswersOfThePublicImplementation) {
  using Outer = std::vector<std::vector<double>>;
  const std::vector<Outer> data{{{3, 4, 3}, {1.2, 3.1, 3}}, {{0.2, 1, 1.5}, {1, 2, 3}}};
  const auto v = three_levels(data).value();
  EXPECT_NEAR(v.s[0], 0.72667, 1e-5);
  EXPECT_NEAR(v.s[0], 2.18 / 3, 1e-9);
  EXPECT_NEAR(v.t[0], 0.7266667, 1e-4);
  EXPECT_NEAR(v.t[1], 0.262777778, 1e-9);
  EXPECT_NEAR(v.t[2], 0.7747, 1e-4);
}

TEST(KaliberaJones, WorkedExampleOfThePaper) {
  using Outer = std::vector<std::vector<double>>;
  const std::vector<Outer> data{{{9, 5}, {8, 3}}, {{10, 6}, {7, 11}}, {{1, 12}, {2, 4}}};
  const auto v = three_levels(data).value();
  EXPECT_NEAR(v.s[0], 16.5, 0.05);
  EXPECT_NEAR(v.s[1], 2.6, 0.05);
  EXPECT_NEAR(v.s[2], 3.6, 0.05);
  EXPECT_NEAR(v.t[1], -5.7, 0.051);
  EXPECT_NEAR(v.t[2], 2.3, 0.05);
  const Outer two{{9, 5, 8, 3}, {10, 6, 7, 11}, {1, 12, 2, 4}};
  const auto w = two_levels(two).value();
  EXPECT_NEAR(w.s1, 12.7, 0.05);
  EXPECT_NEAR(w.s2, 3.6, 0.05);
  EXPECT_NEAR(w.t2, 0.4, 0.05);
}

TEST(KaliberaJones, CheapStepsAndDearLaunchesMeanMoreSteps) {
  // public implementation: costs 100, 20, 3 give r_1 = 4.2937 from T = 0.7266667, 0.262777778
  EXPECT_EQ(best_steps_per_launch(0.7266667, 0.262777778, 20.0 / 3), 5U);
  EXPECT_EQ(best_steps_per_launch(1, 0.25, 100), 20U);
  EXPECT_FALSE(best_steps_per_launch(1, -0.1, 100));
}

}  // namespace
}  // namespace qualify::statistics
