#include "settings.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <vector>

#include "support/temp_folder.hpp"

namespace quickstart {
namespace {

using testing::HasSubstr;

Invocation read(std::vector<std::string> arguments) {
  std::vector<const char*> argv = {"quickstart_trainer"};
  for (const std::string& argument : arguments) {
    argv.push_back(argument.c_str());
  }
  return read_settings(static_cast<int>(argv.size()), argv.data());
}

std::string refusal(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--text", "t", "--output", "o"});
  const Invocation invocation = read(std::move(arguments));
  EXPECT_EQ(invocation.exit_code, 2);
  EXPECT_FALSE(invocation.settings);
  return invocation.text;
}

TEST(Settings, CommandLineWinsOverTheFile) {
  const qualify::test::TempFolder folder;
  std::ofstream(folder / "c") << "# a comment\nlr = 0.5\ntrain-iters = 7\n";
  const Invocation invocation =
      read({"--config", (folder / "c").string(), "--text", "t", "--output", "o", "--lr", "0.25"});
  ASSERT_TRUE(invocation.settings) << invocation.text;
  EXPECT_EQ(invocation.settings->lr, 0.25);
  EXPECT_EQ(invocation.settings->train_iters, 7);
}

TEST(Settings, ArmsAreNamed) {
  EXPECT_EQ(read({"--text", "t", "--output", "o", "--reduction", "arrival"}).settings->reduction,
            Reduction::arrival);
  EXPECT_THAT(refusal({"--reduction", "random"}), HasSubstr("--reduction"));
}

TEST(Settings, BadValuesAreRefusedByName) {
  EXPECT_THAT(refusal({"--lr", "nan"}), HasSubstr("--lr: expected a number"));
  EXPECT_THAT(refusal({"--ranks", "0"}),
              HasSubstr("--ranks: expected a whole number from 1 to 64"));
  EXPECT_THAT(refusal({"--ranks", "-1"}), HasSubstr("--ranks"));
  EXPECT_THAT(refusal({"--train-iters", "1e3"}), HasSubstr("--train-iters"));
}

TEST(Settings, APlantNamesWhatWhereAndWhen) {
  const auto plant =
      read({"--text", "t", "--output", "o", "--plant", "sum:3:17"}).settings->plant.value();
  EXPECT_EQ(plant.what, Planted::sum);
  EXPECT_EQ(plant.rank, 3U);
  EXPECT_EQ(plant.iteration, 17);
  for (const char* bad : {"sum", "sum:3", "weights:3:17", "sum:4:17", "sum:3:0", "sum:-1:2"}) {
    EXPECT_THAT(refusal({"--plant", bad}), HasSubstr("--plant")) << bad;
  }
}

TEST(Settings, UnknownAndDoubleKeysOfTheFileAreRefused) {
  const qualify::test::TempFolder folder;
  std::ofstream(folder / "unknown") << "learning-rat = 1\n";
  EXPECT_THAT(refusal({"--config", (folder / "unknown").string()}), HasSubstr("learning-rat"));
  std::ofstream(folder / "double") << "lr = 1\nlr = 2\n";
  EXPECT_THAT(refusal({"--config", (folder / "double").string()}), HasSubstr("--lr"));
  EXPECT_THAT(refusal({"--config", (folder / "none").string()}), HasSubstr("none"));
}

}  // namespace
}  // namespace quickstart
