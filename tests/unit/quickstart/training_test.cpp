#include "training.hpp"

#include <gmock/gmock.h>

#include <regex>

#include "errors.hpp"
#include "small_run.hpp"

namespace quickstart {
namespace {

namespace fs = std::filesystem;
using test::content;
using test::run;
using test::small_settings;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::string traces_of(const Settings& settings) {
  std::string all;
  for (unsigned rank = 0; rank < settings.ranks; ++rank) {
    all += content(settings.output / "traces" / ("rank_00000" + std::to_string(rank) + ".jsonl"));
  }
  return all;
}

double loss_at(const std::string& log, int iteration) {
  std::smatch match;
  const std::regex line("iteration +" + std::to_string(iteration) + "/.*lm loss: ([^ ]+) ");
  return std::regex_search(log, match, line) ? std::stod(match[1]) : -1;
}

TEST(Training, TwoOrderedLaunchesLeaveTheSameTraces) {
  const qualify::test::TempFolder folder;
  const Settings a = small_settings(folder, "a");
  const Settings b = small_settings(folder, "b");
  run(a);
  run(b);
  EXPECT_FALSE(traces_of(a).empty());
  EXPECT_EQ(traces_of(a), traces_of(b));
}

TEST(Training, EveryRankEndsWithTheSameWeightsInBothArms) {
  for (const Reduction reduction : {Reduction::ordered, Reduction::arrival}) {
    const qualify::test::TempFolder folder;
    Settings settings = small_settings(folder, "out");
    settings.reduction = reduction;
    run(settings);
    std::set<std::string> digests;
    for (unsigned rank = 0; rank < settings.ranks; ++rank) {
      const std::string trace =
          content(settings.output / "traces" / ("rank_00000" + std::to_string(rank) + ".jsonl"));
      const std::size_t last = trace.rfind("\"name\":\"hidden.weight\"");
      digests.insert(trace.substr(trace.find("sha256", last), 75));
    }
    EXPECT_EQ(digests.size(), 1U) << name_of(reduction);
  }
}

TEST(Training, Learns) {
  const qualify::test::TempFolder folder;
  Settings settings = small_settings(folder, "out");
  settings.train_iters = 60;
  settings.save_interval = 0;
  settings.lr = 0.02;
  const std::string log = run(settings);
  EXPECT_LT(loss_at(log, 60), 0.7 * loss_at(log, 1)) << log;
}

TEST(Training, LossThatIsNotFiniteEndsTheRunAndKeepsWhatCameBefore) {
  const qualify::test::TempFolder folder;
  Settings settings = small_settings(folder, "out");
  settings.lr = settings.min_lr = 1e30;
  settings.clip_grad = 0;
  EXPECT_THAT([&] { run(settings); }, ThrowsMessage<TrainingError>(HasSubstr("at iteration 2")));
  EXPECT_THAT(traces_of(settings), HasSubstr("\"iteration\":1"));
  EXPECT_FALSE(fs::exists(settings.output / "checkpoints"));
}

TEST(Training, StopEndsTheIterationInAllRanksAndSaves) {
  const qualify::test::TempFolder folder;
  const Settings settings = small_settings(folder, "out");
  std::ostringstream log;
  const std::atomic<bool> stop = true;
  EXPECT_EQ(train(settings, log, stop), Ending::stopped);
  EXPECT_EQ(content(settings.output / "checkpoints/latest_checkpointed_iteration.txt"), "1\n");
}

TEST(Training, FolderThatHoldsARunIsLeftAlone) {
  const qualify::test::TempFolder folder;
  const Settings settings = small_settings(folder, "out");
  run(settings);
  const std::string before = traces_of(settings);
  EXPECT_THAT([&] { run(settings); }, ThrowsMessage<InputError>(HasSubstr("holds a run already")));
  EXPECT_EQ(traces_of(settings), before);
}

TEST(Training, TextThatIsMissingOrTooShortIsRefused) {
  const qualify::test::TempFolder folder;
  Settings settings = small_settings(folder, "out");
  std::ofstream(settings.text) << "ab";
  EXPECT_THAT([&] { run(settings); }, ThrowsMessage<InputError>(HasSubstr("--context")));
  fs::remove(settings.text);
  EXPECT_THAT([&] { run(settings); }, ThrowsMessage<InputError>(HasSubstr("is not a file")));
  EXPECT_FALSE(fs::exists(settings.output));
}

}  // namespace
}  // namespace quickstart
