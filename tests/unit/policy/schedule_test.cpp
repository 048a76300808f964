#include <gmock/gmock.h>

#include <fstream>

#include "qualify/policy/gate.hpp"
#include "support/temp_folder.hpp"

namespace qualify::policy {
namespace {

using ::testing::HasSubstr;

class ScheduledGate : public ::testing::Test {
 protected:
  Result<Qualification> read(const std::string& lines) const {
    std::ofstream(folder / "q.yaml") << "schema_version: 1\ngates:\n  g:\n    kind: repeatability\n"
                                        "    arm: det\n    metrics: [loss]\n"
                                     << lines;
    return read_qualification(folder / "q.yaml");
  }
  test::TempFolder folder;
};

TEST_F(ScheduledGate, KeepsItsPolicyDigestWhateverItsScheduleIs) {
  const auto plain = read("").value();
  const auto scheduled =
      read("    schedule: weekly Sat 02:00\n    time_zone: Europe/Zurich\n").value();
  EXPECT_EQ(scheduled.gates[0].schedule, "weekly Sat 02:00");
  EXPECT_EQ(scheduled.gates[0].time_zone, "Europe/Zurich");
  EXPECT_EQ(policy_digest(scheduled.gates[0]), policy_digest(plain.gates[0]));
  EXPECT_EQ(plain.gates[0].time_zone, "UTC");
}

TEST_F(ScheduledGate, FaultsAreNamedWithTheirPlace) {
  EXPECT_THAT(read("    schedule: weekly 02:00\n").error().describe(), HasSubstr("q.yaml:7:15"));
  EXPECT_THAT(read("    schedule: daily 02:00\n    time_zone: Mars\n").error().describe(),
              HasSubstr("q.yaml:8:16: no time zone 'Mars'"));
  EXPECT_THAT(read("    time_zone: UTC\n").error().describe(),
              HasSubstr("a time zone without 'schedule'"));
}

}  // namespace
}  // namespace qualify::policy
