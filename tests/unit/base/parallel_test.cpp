#include "qualify/base/parallel.hpp"

#include <gtest/gtest.h>

namespace qualify {
namespace {

TEST(Parallel, EveryIndexIsWorkedOnOnceTheFirstOnTheCallingThread) {
  for (const std::size_t count : {0U, 1U, 2U, 100U}) {
    for (const unsigned jobs : {0U, 1U, 3U}) {
      std::vector<std::atomic<int>> calls(count);
      std::thread::id first;
      for_each_index(count, jobs, [&](std::size_t i) {
        ++calls[i];
        if (i == 0) first = std::this_thread::get_id();
      });
      for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(calls[i], 1) << i << " of " << count;
      EXPECT_EQ(first, count > 0 ? std::this_thread::get_id() : std::thread::id());
    }
  }
}

}  // namespace
}  // namespace qualify
