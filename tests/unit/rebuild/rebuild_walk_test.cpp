#include <gmock/gmock.h>

#include "finished_state.hpp"
#include "support/system_calls.hpp"

namespace qualify::rebuild {
namespace {

class RebuildWalk : public FinishedState {
 protected:
  void SetUp() override {
    FinishedState::SetUp();
    settle();
    fs::copy(paths.folder, folder / "fresh", fs::copy_options::recursive);
  }
  void begin_anew() const {
    fs::remove_all(paths.folder);
    fs::copy(folder / "fresh", paths.folder, fs::copy_options::recursive);
  }
};

TEST_F(RebuildWalk, AnyPlaceOfTheFileMayBeDamaged) {
  const auto size = fs::file_size(paths.database());
  std::size_t found = 0;
  for (std::uintmax_t at = 0; at < size; at += 509) {  // a prime: every place in a page comes up
    begin_anew();
    flip(paths.database(), at, 0xff);
    const auto done = rebuild_now();
    ASSERT_TRUE(done) << at << ": " << done.error().describe();
    found += done->needed ? 1 : 0;
    ASSERT_TRUE(done->lost.empty()) << at << ": " << done->lost.front();
    ASSERT_TRUE(done->faults.empty()) << at << ": " << done->faults.front().describe();
    ASSERT_EQ(shown(), before) << at;
  }
  EXPECT_GT(found, 20U) << "most of a young database is free space, where nothing can be lost";
}

TEST_F(RebuildWalk, KilledAtAnyStepItIsGivenAgain) {
  const auto damage = [&] {
    begin_anew();
    flip(paths.database(), 4096 + 3, 0xff);
    // The transcript too, so that both are replaced.
    const std::string text = read_file(paths.transcript()).value();
    flip(paths.transcript(), text.find("attempt.submitted"));
  };
  damage();
  const int kills = test::kill_at_every_step(
      {REBUILD_ONCE, paths.folder.string()}, test::file_calls(), [&](const std::string& point) {
        const auto done = rebuild_now();
        ASSERT_TRUE(done) << point << ": " << done.error().describe();
        EXPECT_TRUE(done->lost.empty()) << point << ": " << done->lost.front();
        EXPECT_TRUE(done->faults.empty()) << point << ": " << done->faults.front().describe();
        EXPECT_EQ(shown(), before) << point;
        damage();
      });
  EXPECT_GT(kills, 80);
}

TEST_F(RebuildWalk, AFullDiskAtAnyStepLosesNothing) {
  const auto damage = [&] {
    begin_anew();
    flip(paths.database(), 4096 + 3, 0xff);
  };
  damage();
  const int full = test::fill_disk_at_every_step(
      {REBUILD_ONCE, paths.folder.string()}, {"write", "pwrite64", "ftruncate", "link"},
      [&](const std::string& point, int) {
        const auto done = rebuild_now();
        ASSERT_TRUE(done) << point << ": " << done.error().describe();
        EXPECT_TRUE(done->lost.empty()) << point << ": " << done->lost.front();
        EXPECT_EQ(shown(), before) << point;
        damage();
      });
  EXPECT_GT(full, 20);
}

}  // namespace
}  // namespace qualify::rebuild
