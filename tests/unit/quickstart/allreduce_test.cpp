#include "allreduce.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>
#include <vector>

namespace quickstart {
namespace {

constexpr std::size_t kLength = 5000;  // three buckets, the last one short

/// Calls `body(rank)` in a thread a rank.
template <class Body>
void in_ranks(unsigned ranks, Body body) {
  std::vector<std::thread> threads;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([rank, &body] { body(rank); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

class EveryReduction : public testing::TestWithParam<Reduction> {};

TEST_P(EveryReduction, SumsEachElementOverTheRanksInEveryRankTimeAfterTime) {
  constexpr unsigned kRanks = 4;
  const auto reduce = make_all_reduce(GetParam(), kRanks, kLength);
  std::vector<std::vector<float>> values(kRanks);
  in_ranks(kRanks, [&](unsigned rank) {
    for (int call = 0; call < 50; ++call) {
      const std::size_t length = call % 2 == 0 ? kLength : 3;  // as gradient and loss alternate
      values[rank].resize(length);
      for (std::size_t i = 0; i < length; ++i) {
        // Whole numbers below 2^24: their sum is exact in any order.
        values[rank][i] =
            static_cast<float>((i % 100 + 1) * (rank + 1) + static_cast<unsigned>(call));
      }
      reduce->sum(rank, values[rank]);
      for (std::size_t i = 0; i < length; ++i) {
        ASSERT_EQ(values[rank][i],
                  static_cast<float>((i % 100 + 1) * 10 + 4 * static_cast<unsigned>(call)));
      }
    }
  });
}

TEST_P(EveryReduction, WaitingRanksAreReleasedWhenOneFails) {
  const auto reduce = make_all_reduce(GetParam(), 3, 8);
  std::atomic<int> cancelled = 0;
  in_ranks(3, [&](unsigned rank) {
    if (rank == 1) {
      reduce->cancel();
      return;
    }
    std::vector<float> values(8);
    try {
      reduce->sum(rank, values);
    } catch (const Cancelled&) {
      ++cancelled;
    }
  });
  EXPECT_EQ(cancelled, 2);
}

INSTANTIATE_TEST_SUITE_P(, EveryReduction, testing::Values(Reduction::ordered, Reduction::arrival),
                         [](const auto& of) { return std::string(name_of(of.param)); });

TEST(OrderedReduction, AddsRankAfterRank) {
  // 1 + 2^24 rounds to 2^24, so that only ((2^24 + 1) + 1) - 2^24 = 0 and another order gives 2.
  const std::vector<float> parts = {0x1p24F, 1.0F, 1.0F, -0x1p24F};
  const auto reduce = make_all_reduce(Reduction::ordered, 4, 1);
  for (int repeat = 0; repeat < 100; ++repeat) {
    in_ranks(4, [&](unsigned rank) {
      float value = parts[rank];
      reduce->sum(rank, std::span(&value, 1));
      EXPECT_EQ(value, 0.0F);
    });
  }
}

}  // namespace
}  // namespace quickstart
