#include "qualify/statistics/series.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "qualify/statistics/location.hpp"

namespace qualify::statistics {
namespace {

using Values = std::vector<double>;

// R data set `lh`: luteinizing hormone, 48 samples at 10 minutes.
const Values kLh{2.4, 2.4, 2.4, 2.2, 2.1, 1.5, 2.3, 2.3, 2.5, 2.0, 1.9, 1.7, 2.2, 1.8, 3.2, 3.2,
                 2.7, 2.2, 2.2, 1.9, 1.9, 1.8, 2.7, 3.0, 2.3, 2.0, 2.0, 2.9, 2.9, 2.7, 2.7, 2.3,
                 2.6, 2.4, 1.8, 1.7, 1.5, 1.4, 2.1, 3.3, 3.5, 3.5, 3.1, 2.6, 2.1, 3.4, 3.0, 2.9};

// R data set `Nile`: annual flow at Aswan 1871-1970.
const Values kNile{1120, 1160, 963,  1210, 1160, 1160, 813,  1230, 1370, 1140, 995,  935,  1110,
                   994,  1020, 960,  1180, 799,  958,  1140, 1100, 1210, 1150, 1250, 1260, 1220,
                   1030, 1100, 774,  840,  874,  694,  940,  833,  701,  916,  692,  1020, 1050,
                   969,  831,  726,  456,  824,  702,  1120, 1100, 832,  764,  821,  768,  845,
                   864,  862,  698,  845,  744,  796,  1040, 759,  781,  865,  845,  944,  984,
                   897,  822,  1010, 771,  676,  649,  846,  812,  742,  801,  1040, 860,  874,
                   848,  890,  744,  749,  838,  1050, 918,  986,  797,  923,  975,  815,  1020,
                   906,  901,  1170, 912,  746,  919,  718,  714,  740};

TEST(Autocorrelation, KnownAnswerOfLh) {
  EXPECT_NEAR(mean(kLh).value(), 2.4, 1e-9);
  EXPECT_NEAR(standard_deviation(kLh).value(), 0.551593436463, 1e-9);
  const auto rho = autocorrelation(kLh, 2).value();
  EXPECT_EQ(rho[0], 1);
  EXPECT_NEAR(rho[1], 0.575524475524, 1e-9);
  EXPECT_NEAR(rho[2], 0.181818181818, 1e-9);
}

TEST(Autocorrelation, AConstantSeriesHasNone) {
  EXPECT_FALSE(autocorrelation(Values(10, 1.0), 1));
  EXPECT_EQ(effective_sample_size(Values(10, 1.0)).value(), 10);
}

Values ar1(double rho, std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, 1);
  Values x;
  double state = normal(random) / std::sqrt(1 - rho * rho);
  for (std::size_t i = 0; i < n; ++i) {
    x.push_back(state);
    state = rho * state + normal(random);
  }
  return x;
}

TEST(EffectiveSampleSize, FollowsTheTheoryOfAr1) {
  for (const double rho : {0.0, 0.5, 0.9}) {
    const double expected = 20000 * (1 - rho) / (1 + rho);
    EXPECT_NEAR(effective_sample_size(ar1(rho, 20000, 3)).value() / expected, 1, 0.15) << rho;
  }
}

TEST(Mser5, FindsTheEndOfAWarmUp) {
  Values x = ar1(0, 200, 4);
  for (std::size_t i = 0; i < 30; ++i) x[i] += 20 - 0.5 * static_cast<double>(i);
  const auto t = mser5(x).value();
  EXPECT_EQ(t.batches, 40U);
  EXPECT_GE(t.discarded, 5U);
  EXPECT_LE(t.discarded, 9U);
  EXPECT_TRUE(t.steady);
}

TEST(Mser5, MinimisesItsDefinition) {
  const Values x = ar1(0.5, 100, 11);
  const auto t = mser5(x).value();
  const auto score = [&x](std::size_t d) {
    Values b;
    for (std::size_t i = 5 * d; i + 5 <= x.size(); i += 5) {
      b.push_back((x[i] + x[i + 1] + x[i + 2] + x[i + 3] + x[i + 4]) / 5);
    }
    const double s = standard_deviation(b).value();
    const double n = static_cast<double>(b.size());
    return s * s * (n - 1) / (n * n);
  };
  for (std::size_t d = 0; d + 3 <= 20; ++d) EXPECT_GE(score(d) * (1 + 1e-12), score(t.discarded));
}

TEST(Mser5, ASeriesThatNeverSettlesIsNotSteady) {
  Values x;
  for (int i = 0; i < 100; ++i) x.push_back(i < 80 ? 100 - i : 20 + 0.01 * (i % 3));
  EXPECT_FALSE(mser5(x).value().steady);
  EXPECT_FALSE(mser5(Values(19, 1.0)));
}

TEST(MeanShift, KnownAnswerOfTheNile) {
  const auto s = mean_shift(kNile).value();
  EXPECT_EQ(s.at, 28U);
  ASSERT_TRUE(s.interval_known);
  EXPECT_EQ(s.low, 25U);
  EXPECT_EQ(s.high, 32U);
  EXPECT_NEAR(s.before, 1097.75, 1e-9);
  EXPECT_NEAR(s.after, 849.972222222222, 1e-9);
  EXPECT_NEAR(s.bic_none, 1318.24180688, 1e-8);  // given with eight decimals
  EXPECT_NEAR(s.bic_one, 1270.08373574, 1e-8);
  EXPECT_TRUE(s.preferred());
}

TEST(MeanShift, NoiseAloneIsNotPreferred) {
  int preferred = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    preferred += mean_shift(ar1(0, 100, seed)).value().preferred() ? 1 : 0;
  }
  EXPECT_LE(preferred, 10);
}

TEST(MeanShift, IntervalCoversTheTrueBreak) {
  // Break of one standard deviation with different variances on the two sides: 95% nominal.
  int covered = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Values x = ar1(0, 200, seed);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = i < 90 ? x[i] : 1.5 * x[i] + 1.5;
    const auto s = mean_shift(x).value();
    covered += s.interval_known && s.low <= 90 && 90 <= s.high ? 1 : 0;
  }
  EXPECT_GE(covered, 270);
}

TEST(MeanShift, TwoLevelsWithoutNoiseAreFoundExactly) {
  Values x(40, 1.0);
  std::fill(x.begin() + 25, x.end(), 2.0);
  const auto s = mean_shift(x).value();
  EXPECT_EQ(s.at, 25U);
  EXPECT_EQ(s.low, 25U);
  EXPECT_EQ(s.high, 25U);
  EXPECT_FALSE(mean_shift(Values(40, 1.0)));
}

}  // namespace
}  // namespace qualify::statistics
