#include "qualify/policy/gpu_clocks.hpp"

#include <gmock/gmock.h>

namespace qualify::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RunClocks run(const char* name, std::uint32_t mhz, std::uint64_t limits) {
  RunClocks clocks{name, {}};
  for (const char* uuid : {"GPU-a", "GPU-b"}) {
    for (const bool after : {false, true}) {
      clocks.gpus.push_back({"n1", uuid, after, mhz, 700'000, after ? limits : 1});
    }
  }
  return clocks;
}

TEST(GpuClocks, IdlenessAndSettingsTakeNoSpeedAway) {
  EXPECT_THAT(slowing_limits(0x103), IsEmpty());
  EXPECT_THAT(slowing_limits(0x44), ElementsAre("software power cap", "hardware thermal slowdown"));
  EXPECT_THAT(slowing_limits(1ULL << 40U), ElementsAre("limit 40"));
}

TEST(GpuClocks, EqualAndFreeRunsHaveNothingAgainstThem) {
  const std::vector<RunClocks> runs{run("a", 1980, 0), run("b", 1980, 1)};
  EXPECT_THAT(clock_limits(runs), IsEmpty());
  EXPECT_EQ(clocks_summary(runs),
            "2 GPUs, SM set to 1980 MHz, power limit 700 W; held down by: nothing");
}

TEST(GpuClocks, AGpuThatWasHeldDownIsNamedWithItsRun) {
  const std::vector<RunClocks> runs{run("a", 1980, 0), run("b", 1980, 0x40)};
  EXPECT_THAT(clock_limits(runs),
              ElementsAre("run b: clocks were held down by hardware thermal slowdown on node n1 "
                          "GPU-a and 1 further GPUs"));
  EXPECT_THAT(clocks_summary(runs), HasSubstr("held down by: hardware thermal slowdown"));
}

TEST(GpuClocks, OtherSettingsInOneRunAreSaid) {
  const std::vector<RunClocks> runs{run("a", 1980, 0), run("b", 1410, 0)};
  EXPECT_THAT(clock_limits(runs),
              ElementsAre("runs a and b had other clock settings: SM set to 1980 MHz, power limit "
                          "700 W against SM set to 1410 MHz, power limit 700 W"));
}

TEST(GpuClocks, NoneRecordedIsSaid) {
  EXPECT_EQ(clocks_summary({{"a", {}}}), "no GPU clocks were recorded");
  EXPECT_THAT(clock_limits({{"a", {}}, run("b", 1980, 0)}), IsEmpty());
}

}  // namespace
}  // namespace qualify::policy
