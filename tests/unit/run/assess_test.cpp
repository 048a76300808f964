#include <gmock/gmock.h>

#include "qualify/run/evidence.hpp"

namespace qualify::run {
namespace {

using ::testing::HasSubstr;

scheduler::Job failed_with(int exit_code) {
  scheduler::Job job;
  job.state = scheduler::JobState::failed;
  job.exit_code = exit_code;
  return job;
}

TEST(Assess, AJobThatLeftNoResultIsTheWorkloadsDoing) {
  for (const int exit_code : {1, 2, 5, 137}) {
    const Assessment assessment = assess(failed_with(exit_code), std::nullopt, "nonce", Digest());
    EXPECT_FALSE(assessment.complete);
    EXPECT_EQ(assessment.failure_class, FailureClass::workload) << exit_code;
  }
}

TEST(Assess, AJobThatFoundNoRoomForItsResultIsNot) {
  const Assessment assessment = assess(failed_with(kNoRoomExit), std::nullopt, "nonce", Digest());
  EXPECT_FALSE(assessment.complete);
  EXPECT_EQ(assessment.failure_class, FailureClass::infrastructure);
  EXPECT_THAT(assessment.failure, HasSubstr("disk"));
}

TEST(Assess, AWorkloadThatEndsWithTheSameCodeHasItsResult) {
  Sentinel sentinel;
  sentinel.exit_code = kNoRoomExit;
  sentinel.stage = "train";
  sentinel.failure = "exit code 28";
  const Assessment assessment = assess(failed_with(kNoRoomExit), sentinel, "nonce", Digest());
  EXPECT_EQ(assessment.failure_class, FailureClass::workload);
  EXPECT_EQ(assessment.failure, "exit code 28");
}

}  // namespace
}  // namespace qualify::run
