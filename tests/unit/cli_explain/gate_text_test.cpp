#include "gate_text.hpp"

#include <gmock/gmock.h>

namespace qualify::cli {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(GateText, SaysOfEveryKindWhatItAsksNeedsAndIsClosedBy) {
  const auto all = policy::read_qualification(ALL_KINDS);
  ASSERT_TRUE(all) << all.error().describe();
  for (const policy::Gate& gate : all->gates) {
    const GateText text = describe(gate);
    EXPECT_THAT(text.asks, Not(IsEmpty())) << gate.name;
    EXPECT_THAT(text.runs, Not(IsEmpty())) << gate.name;
    EXPECT_THAT(text.closes, Not(IsEmpty())) << gate.name;
    EXPECT_EQ(run_count(gate) == 0, policy::is_composite(gate.kind)) << gate.name;
  }
  EXPECT_EQ(run_count(*all->gate("cost-48")), 16U);
  EXPECT_THAT(describe(*all->gate("scale-3072")).asks,
              Contains(HasSubstr("Exactly 384 nodes x 8 GPUs")));
  EXPECT_THAT(describe(*all->gate("repeat-48")).asks,
              Contains(HasSubstr("at each of iterations 1 to 50")));
}

}  // namespace
}  // namespace qualify::cli
