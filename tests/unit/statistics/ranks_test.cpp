#include "qualify/statistics/ranks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace qualify::statistics {
namespace {

std::vector<std::int64_t> steps(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> all;
  for (std::int64_t step = first; step <= last; ++step) all.push_back(step);
  return all;
}

/// `ranks` ranks of 1 s a step over steps 1 to 40; rank 2 takes `slow` seconds.
RankTimes launch(std::uint32_t ranks, double slow) {
  RankTimes times;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (std::int64_t step = 1; step <= 40; ++step) times[rank][step] = rank == 2 ? slow : 1.0;
  }
  return times;
}

TEST(SlowestRank, IsTheOneWithTheGreatestMedian) {
  const auto found = slowest_rank(launch(8, 1.1), steps(11, 40));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 2U);
  EXPECT_EQ(found->ranks, 8U);
  EXPECT_DOUBLE_EQ(found->typical, 1.1);
  EXPECT_DOUBLE_EQ(found->above, std::log(1.1));
}

TEST(SlowestRank, IsJudgedOnTheSteadyStepsAlone) {
  RankTimes times = launch(4, 1.1);
  for (std::int64_t step = 1; step <= 10; ++step) times[0][step] = 100;  // start-up
  times[1][20] = 1000;                                                   // one stall is no rank
  EXPECT_EQ(slowest_rank(times, steps(11, 40))->rank, 2U);
}

TEST(SlowestRank, NeedsTwoRanksWithEnoughUsableSteps) {
  EXPECT_FALSE(slowest_rank({}, steps(1, 40)));
  EXPECT_FALSE(slowest_rank(launch(1, 1), steps(1, 40)));
  EXPECT_FALSE(slowest_rank(launch(4, 1.1), steps(1, 19)));
  RankTimes times = launch(3, 1.1);
  for (auto& [step, seconds] : times[2]) {
    if (step % 2 == 0) seconds = std::numeric_limits<double>::quiet_NaN();
  }
  times[2].erase(1);
  const auto found = slowest_rank(times, steps(1, 40));  // rank 2 has 19 values left
  ASSERT_TRUE(found);
  EXPECT_EQ(found->ranks, 2U);
  EXPECT_EQ(found->rank, 0U);
}

TEST(Straggler, IsTheRankThatIsSlowestMostOften) {
  const auto found = straggler({{3, 8, 1.1, 0.1}, {1, 8, 1.5, 0.5}, {3, 8, 1.3, 0.3}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 3U);
  EXPECT_EQ(found->slowest_in, 2U);
  EXPECT_EQ(found->launches, 3U);
  EXPECT_DOUBLE_EQ(found->above, 0.2);
  EXPECT_FALSE(straggler({}));
}

}  // namespace
}  // namespace qualify::statistics
