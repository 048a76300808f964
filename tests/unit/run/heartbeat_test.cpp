#include "heartbeat.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "qualify/base/files.hpp"
#include "support/temp_folder.hpp"

namespace qualify::run {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class HeartbeatTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_folders(folder / "logs"));
    ASSERT_TRUE(make_folders(folder / "output" / "traces"));
    EXPECT_FALSE(heart.hung(at(0min)));
  }
  static Time at(Duration since) { return Time(std::chrono::seconds(1767225600)) + since; }
  void log(const std::string& text) {
    std::ofstream(folder / "logs" / "stdout.log", std::ios::app) << text;
  }
  void write(const std::string& file) {
    std::ofstream(folder / "output" / file, std::ios::app) << "more\n";
  }

  test::TempFolder folder;
  Heartbeat heart{
      folder.path(), {{"trace", "traces", ""}, {"checkpoint", "checkpoints", ""}}, 10min};
};

TEST_F(HeartbeatTest, SilenceIsHungAfterThePatienceAndNotBefore) {
  EXPECT_FALSE(heart.hung(at(9min)));
  EXPECT_THAT(heart.hung(at(10min)).value(), HasSubstr("no new iteration for 10m"));
}

TEST_F(HeartbeatTest, ANewIterationInTheLogIsProgress) {
  log(" iteration        7/     100 | lm loss: 1.0\n");
  EXPECT_FALSE(heart.hung(at(9min)));
  EXPECT_FALSE(heart.hung(at(18min)));
  EXPECT_THAT(heart.hung(at(19min)).value(), HasSubstr("after iteration 7"));
}

TEST_F(HeartbeatTest, ALogThatRepeatsItselfIsNoProgress) {
  log(" iteration        7/     100 | lm loss: 1.0\n");
  EXPECT_FALSE(heart.hung(at(1min)));
  for (int minute = 2; minute <= 10; ++minute) {
    log("NCCL WARN still waiting, iteration 7/ 100\n");
    EXPECT_FALSE(heart.hung(at(minute * 1min)));
  }
  EXPECT_TRUE(heart.hung(at(11min)));
}

TEST_F(HeartbeatTest, AnIterationThatIsWrittenInTwoPiecesIsRead) {
  log(" iteration    ");
  EXPECT_FALSE(heart.hung(at(5min)));
  log("    8/ 100 | lm loss");
  EXPECT_FALSE(heart.hung(at(9min)));
  EXPECT_THAT(heart.hung(at(20min)).value(), HasSubstr("after iteration 8"));
}

TEST_F(HeartbeatTest, AMuchLargerLogThanIsReadAtOnceIsFollowed) {
  log(std::string(9U << 20U, '.') + "\n iteration 3/ 5\n");
  EXPECT_FALSE(heart.hung(at(9min)));
  log(std::string(9U << 20U, '.') + "\n iteration 4/ 5\n");
  EXPECT_FALSE(heart.hung(at(18min)));
  EXPECT_THAT(heart.hung(at(30min)).value(), HasSubstr("after iteration 4"));
}

TEST_F(HeartbeatTest, ATraceThatGrowsIsProgressAndACheckpointIsNot) {
  write("traces/rank-0.jsonl");
  EXPECT_FALSE(heart.hung(at(9min)));
  ASSERT_TRUE(make_folders(folder / "output" / "checkpoints"));
  write("checkpoints/iter_1");
  EXPECT_FALSE(heart.hung(at(18min)));
  EXPECT_TRUE(heart.hung(at(19min)));
}

TEST_F(HeartbeatTest, AClockThatIsPutBackStartsTheTimeAgain) {
  EXPECT_FALSE(heart.hung(at(-60min)));
  EXPECT_FALSE(heart.hung(at(-51min)));
  EXPECT_TRUE(heart.hung(at(-50min)));
}

TEST_F(HeartbeatTest, WithoutPatienceNothingIsHung) {
  Heartbeat none(folder.path(), {}, Duration::zero());
  EXPECT_FALSE(none.hung(at(0min)));
  EXPECT_FALSE(none.hung(at(24h)));
}

}  // namespace
}  // namespace qualify::run
