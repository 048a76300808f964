#include "checkpoint.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

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

/// A finished run of 8 iterations with checkpoints at 4 and 8, and settings that resume it.
struct Finished {
  qualify::test::TempFolder folder;
  Settings first = small_settings(folder, "first");
  Settings resumed = small_settings(folder, "resumed");
  fs::path at4 = first.output / "checkpoints/iter_0000004";

  Finished() {
    run(first);
    resumed.resume = at4;
  }
};

TEST(Checkpoint, ResumedRunEndsInTheSameBitsAsTheUninterruptedOne) {
  Finished f;
  run(f.resumed);
  for (const char* file : {"rank_000000.safetensors", "rank_000001.safetensors",
                           "rank_000002.safetensors", "metadata.json"}) {
    const fs::path name = fs::path("checkpoints/iter_0000008") / file;
    EXPECT_FALSE(content(f.first.output / name).empty()) << name;
    EXPECT_EQ(content(f.first.output / name), content(f.resumed.output / name)) << name;
  }
}

TEST(Checkpoint, FolderOfAllStandsForItsLatest) {
  Finished f;
  f.resumed.train_iters = 8;
  f.resumed.resume = f.first.output / "checkpoints";
  EXPECT_EQ(content(f.first.output / "checkpoints/latest_checkpointed_iteration.txt"), "8\n");
  EXPECT_THAT([&] { run(f.resumed); },
              ThrowsMessage<InputError>(HasSubstr("iteration 8; nothing is left")));
}

TEST(Checkpoint, AnyOfAllIsTakenByItsIteration) {
  Finished f;
  f.resumed.resume = f.first.output / "checkpoints";
  f.resumed.ckpt_step = 4;
  run(f.resumed);
  const fs::path last = "checkpoints/iter_0000008/rank_000000.safetensors";
  EXPECT_EQ(content(f.first.output / last), content(f.resumed.output / last));
}

TEST(Checkpoint, WithoutTheOptimizersStateTheRunGoesElsewhere) {
  Finished f;
  f.resumed.no_load_optim = true;
  run(f.resumed);
  const fs::path last = "checkpoints/iter_0000008/rank_000000.safetensors";
  EXPECT_NE(content(f.first.output / last), content(f.resumed.output / last));
}

TEST(Checkpoint, ListsEveryShareWithItsSize) {
  Finished f;
  const auto metadata = nlohmann::json::parse(content(f.at4 / "metadata.json"));
  EXPECT_EQ(metadata["iteration"], 4);
  ASSERT_EQ(metadata["files"].size(), 3U);
  for (const auto& [name, file] : metadata["files"].items()) {
    EXPECT_EQ(file["bytes"], fs::file_size(f.at4 / name));
  }
}

TEST(Checkpoint, HoldsEveryParameterAndBothOptimizerStatesOnce) {
  Finished f;
  std::multiset<std::string> found;
  for (unsigned rank = 0; rank < 3; ++rank) {
    const std::string bytes =
        content(f.at4 / ("rank_00000" + std::to_string(rank) + ".safetensors"));
    std::uint64_t length = 0;
    ASSERT_GE(bytes.size(), sizeof length);
    std::memcpy(&length, bytes.data(), sizeof length);
    const auto header = nlohmann::json::parse(bytes.substr(8, length));
    for (const auto& [name, tensor] : header.items()) {
      found.insert(name);
      EXPECT_EQ(tensor["dtype"], "F32");
    }
  }
  std::multiset<std::string> expected;
  for (const Parameter& p : parameters_of({2, 1, 1, 1})) {
    expected.insert({p.name, "optimizer.mean." + p.name, "optimizer.square." + p.name});
  }
  EXPECT_EQ(found, expected);
}

TEST(Checkpoint, WithoutMetadataIsIncomplete) {
  Finished f;
  fs::remove(f.at4 / "metadata.json");
  EXPECT_THAT([&] { run(f.resumed); },
              ThrowsMessage<InputError>(HasSubstr("no complete checkpoint")));
  EXPECT_FALSE(fs::exists(f.resumed.output));
}

TEST(Checkpoint, ChangedShareIsRefused) {
  Finished f;
  std::string bytes = content(f.at4 / "rank_000001.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(f.at4 / "rank_000001.safetensors", std::ios::binary) << bytes;
  EXPECT_THAT([&] { run(f.resumed); }, ThrowsMessage<InputError>(HasSubstr("it has changed")));
}

TEST(Checkpoint, MissingShareIsRefused) {
  Finished f;
  fs::remove(f.at4 / "rank_000002.safetensors");
  EXPECT_THAT([&] { run(f.resumed); }, ThrowsMessage<InputError>(HasSubstr("is missing")));
}

TEST(Checkpoint, OtherSettingsAreRefusedByName) {
  Finished f;
  f.resumed.seed = 99;
  EXPECT_THAT([&] { run(f.resumed); },
              ThrowsMessage<InputError>(HasSubstr("seed 1234; this run has 99")));
}

}  // namespace
}  // namespace quickstart
