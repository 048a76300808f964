#include "qualify/statistics/location.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace qualify::statistics {
namespace {

using Values = std::vector<double>;

TEST(Location, MedianOfOddAndEvenSamples) {
  EXPECT_EQ(median(Values{3, 1, 2}).value(), 2);
  EXPECT_EQ(median(Values{4, 1, 3, 2}).value(), 2.5);
  EXPECT_EQ(median(Values{7}).value(), 7);
}

TEST(Location, MedianIgnoresOneStallThatMovesTheMean) {
  Values steps(19, 12.0);
  steps.push_back(100.0);
  EXPECT_EQ(median(steps).value(), 12.0);
  EXPECT_DOUBLE_EQ(mean(steps).value(), 16.4);
}

TEST(Location, TrimmedMeanDropsBothEnds) {
  const Values v{100, 1, 2, 3, 4, 5, 6, 7, 8, -50};
  EXPECT_DOUBLE_EQ(trimmed_mean(v, 0.1).value(), 4.5);
  EXPECT_DOUBLE_EQ(trimmed_mean(v, 0.0).value(), mean(v).value());
  EXPECT_FALSE(trimmed_mean(v, 0.5));
  EXPECT_FALSE(trimmed_mean(v, -0.1));
}

Values walsh(const Values& x) {
  Values all;
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = i; j < x.size(); ++j) all.push_back((x[i] + x[j]) / 2);
  }
  return all;
}

TEST(Location, HodgesLehmannIsTheMedianOfAllWalshAverages) {
  std::mt19937_64 random(6);
  std::normal_distribution<double> normal(0, 1);
  for (std::size_t n = 1; n <= 40; ++n) {
    Values x;
    for (std::size_t i = 0; i < n; ++i) x.push_back(normal(random));
    if (n > 4) x[1] = x[0];  // a tie
    EXPECT_EQ(hodges_lehmann(x).value(), median(walsh(x)).value()) << n;
  }
}

TEST(Location, HodgesLehmannShiftIsTheMedianOfAllDifferences) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal(0, 1);
  for (std::size_t n = 1; n <= 25; ++n) {
    Values x;
    Values y;
    for (std::size_t i = 0; i < n; ++i) x.push_back(normal(random));
    for (std::size_t i = 0; i < n + 2; ++i) y.push_back(normal(random) + 1);
    Values differences;
    for (const double a : x) {
      for (const double b : y) differences.push_back(a - b);
    }
    EXPECT_EQ(hodges_lehmann_shift(x, y).value(), median(differences).value()) << n;
  }
}

TEST(Location, KnownAnswerOfHollanderAndWolfe) {
  const Values x{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
  const Values y{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
  Values d;
  for (std::size_t i = 0; i < x.size(); ++i) d.push_back(x[i] - y[i]);
  EXPECT_NEAR(hodges_lehmann(d).value(), 0.46, 1e-9);
}

TEST(Location, EmptyOrNotFiniteIsAnErrorNeverANumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  for (const Values& bad : {Values{}, Values{1, nan}, Values{inf, 1}}) {
    EXPECT_FALSE(mean(bad));
    EXPECT_FALSE(median(bad));
    EXPECT_FALSE(trimmed_mean(bad, 0.1));
    EXPECT_FALSE(hodges_lehmann(bad));
    EXPECT_FALSE(hodges_lehmann_shift(bad, Values{1}));
    EXPECT_FALSE(hodges_lehmann_shift(Values{1}, bad));
    EXPECT_FALSE(standard_deviation(bad));
  }
  EXPECT_FALSE(standard_deviation(Values{1}));
}

}  // namespace
}  // namespace qualify::statistics
