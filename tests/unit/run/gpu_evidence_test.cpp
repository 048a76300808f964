#include <gmock/gmock.h>

#include "qualify/run/evidence.hpp"

namespace qualify::run {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(GpuEvidence, HasEachGpuBeforeAndAfter) {
  const auto readings = gpu_readings(
      R"({"node": "n1", "verify": {"gpus": {"gpus": [)"
      R"({"uuid": "GPU-a", "application_sm_mhz": 1980, "power_limit_mw": 700000, "clock_limits": 1}]}},)"
      R"( "collect": {"gpus": {"gpus": [{"uuid": "GPU-a", "application_sm_mhz": null,)"
      R"( "power_limit_mw": 700000, "clock_limits": 64}]}}})"
      "\n"
      R"({"node": "n2", "verify": {"gpus": {"gpus": [{"uuid": null}]}}, "collect": null})"
      "\n");
  ASSERT_THAT(readings, SizeIs(2));
  EXPECT_EQ(readings[0].node, "n1");
  EXPECT_FALSE(readings[0].after);
  EXPECT_EQ(readings[0].application_sm_mhz, 1980U);
  EXPECT_TRUE(readings[1].after);
  EXPECT_FALSE(readings[1].application_sm_mhz);
  EXPECT_EQ(readings[1].clock_limits, 64U);
}

TEST(GpuEvidence, NodesWithoutADriverHaveNone) {
  EXPECT_THAT(gpu_readings(R"({"node": "n1", "verify": {"gpus": {"gpus": []}}, "collect": null})"),
              IsEmpty());
  EXPECT_THAT(gpu_readings(""), IsEmpty());
}

}  // namespace
}  // namespace qualify::run
