#include <fmt/format.h>
#include <gmock/gmock.h>

#include <bit>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "errors.hpp"
#include "event_file.hpp"
#include "log_line.hpp"
#include "small_run.hpp"
#include "support/program.hpp"
#include "trace_writer.hpp"

namespace quickstart {
namespace {

namespace fs = std::filesystem;
using test::run;
using test::small_settings;
using testing::HasSubstr;
using testing::MatchesRegex;

/// Runs a reader from tests/support/readers on `path`.
qualify::test::Ran read_with(const std::string& reader, const fs::path& path) {
  return qualify::test::run_program(
      {"/usr/bin/python3", std::string(READERS) + "/" + reader, path.string()});
}

fs::path only_file(const fs::path& folder) {
  const auto files = fs::directory_iterator(folder);
  return begin(files)->path();
}

TEST(EventFile, EveryFloatComesBackBitForBit) {
  const qualify::test::TempFolder folder;
  const std::vector<float> values = {0.0F,
                                     -0.0F,
                                     1.1F,
                                     std::numeric_limits<float>::denorm_min(),
                                     std::numeric_limits<float>::max(),
                                     std::bit_cast<float>(0x7fc01234U)};
  const auto now = std::chrono::system_clock::now();
  std::string expected = "version brain.Event:2\n";
  {
    EventFile file(folder.path(), now);
    std::int64_t step = 1;
    for (const float value : values) {
      file.scalar("lm loss", value, step, now);
      expected +=
          fmt::format("scalar {} {:08x} lm loss\n", step, std::bit_cast<std::uint32_t>(value));
      step += 1000;
    }
    file.flush();
  }
  const fs::path file = only_file(folder.path());
  EXPECT_THAT(file.filename().string(),
              MatchesRegex("events[.]out[.]tfevents[.][0-9]+[.].+[.][0-9]+[.]0"));
  const qualify::test::Ran read = read_with("read_tfevents.py", file);
  EXPECT_EQ(read.exit_code, 0);
  EXPECT_EQ(read.output, expected);
}

TEST(EventFile, ReaderNoticesOneChangedByte) {
  const qualify::test::TempFolder folder;
  { EventFile(folder.path(), std::chrono::system_clock::now()); }
  const fs::path file = only_file(folder.path());
  std::string bytes = test::content(file);
  bytes[20] = static_cast<char>(bytes[20] ^ 1);
  std::ofstream(file, std::ios::binary) << bytes;
  EXPECT_THAT(read_with("read_tfevents.py", file).output, HasSubstr("wrong CRC"));
}

TEST(EventFile, RunLeavesEveryMetricOfEveryIterationButTheFirstTime) {
  const qualify::test::TempFolder folder;
  const Settings settings = small_settings(folder, "out");
  run(settings);
  const qualify::test::Ran read =
      read_with("read_tfevents.py", only_file(settings.output / "tensorboard"));
  ASSERT_EQ(read.exit_code, 0) << read.output;
  std::map<std::string, std::set<int>> steps;
  std::istringstream lines(read.output);
  for (std::string kind, bits, tag; lines >> kind;) {
    int step = 0;
    if (kind == "scalar" && lines >> step >> bits) {
      std::getline(lines >> std::ws, tag);
      EXPECT_TRUE(steps[tag].insert(step).second) << tag << " twice at " << step;
    } else {
      std::getline(lines, tag);
    }
  }
  const std::set<int> all = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::set<int> later = {2, 3, 4, 5, 6, 7, 8};
  const std::map<std::string, std::set<int>> expected = {
      {"lm loss", all},          {"batch-size", all},    {"loss-scale", all},
      {"grad-norm", all},        {"num-zeros", all},     {"learning-rate", all},
      {"iteration-time", later}, {"rank-time/0", later}, {"rank-time/1", later},
      {"rank-time/2", later}};
  EXPECT_EQ(steps, expected);
}

TEST(TraceWriter, RunLeavesAValidTraceOfEveryRank) {
  const qualify::test::TempFolder folder;
  const Settings settings = small_settings(folder, "out");
  run(settings);
  // An iteration: 2 inputs, the local loss, 3 x 5 parameters, the gradient before and after its
  // sum, 2 scalars; and 4 events.
  EXPECT_EQ(read_with("check_trace.py", settings.output / "traces").output,
            "0 208 176\n1 208 176\n2 208 176\n");
}

TEST(TraceWriter, DigestIsTheSchemasOverHeaderAndBytes) {
  const qualify::test::TempFolder folder;
  TraceWriter writer(folder.path(), 3);
  writer.scalar({1, {}, "train"}, "lm loss", 2.25F);
  writer.flush();
  const auto record = nlohmann::json::parse(test::content(folder / "rank_000003.jsonl"));
  // printf '{"dtype":"float32","mode":"full","schema_version":1,"shape":[]}\0\0\0\x10\x40' |
  // sha256sum
  EXPECT_EQ(record["tensor"]["sha256"],
            "67c8d731bc88dd21bc8dcb95ce656ee11fd2a6aacc47845c6f6002eaad4886b9");
}

TEST(TraceWriter, NeverWritesOverATrace) {
  const qualify::test::TempFolder folder;
  const TraceWriter first(folder.path(), 0);
  EXPECT_THROW(TraceWriter(folder.path(), 0), OutputError);
}

TEST(TraceWriter, SameNameAgainIsTheNextOccurrence) {
  const qualify::test::TempFolder folder;
  TraceWriter writer(folder.path(), 0);
  for (const std::int64_t iteration : {1, 1, 2}) {
    writer.event({iteration, {}, "train"}, "x");
  }
  writer.flush();
  std::istringstream lines(test::content(folder / "rank_000000.jsonl"));
  std::vector<int> occurrences;
  for (std::string line; std::getline(lines, line);) {
    occurrences.push_back(nlohmann::json::parse(line)["occurrence"]);
  }
  EXPECT_EQ(occurrences, (std::vector<int>{0, 1, 0}));
}

TEST(LogLine, IsMegatrons) {
  IterationFacts f;
  f.iteration = 1;
  f.train_iters = 10;
  f.consumed_samples = 32;
  f.global_batch_size = 32;
  f.seconds = 21.8479;
  f.learning_rate = 3.333333e-05;
  f.loss = 11.86396F;
  f.grad_norm = 6.321F;
  f.num_zeros = 256053424;
  const std::chrono::system_clock::time_point time{std::chrono::microseconds(1746771077000042)};
  EXPECT_EQ(
      log_line(f, time),
      " [2025-05-09 06:11:17.000042] iteration        1/      10 | consumed samples:           32 |"
      " elapsed time per iteration (ms): 21847.9 | learning rate: 3.333333E-05 |"
      " global batch size:    32 | lm loss: 1.186396E+01 | loss scale: 1.0 | grad norm: 6.321 |"
      " num zeros: 256053424.0 | number of skipped iterations:   0 |"
      " number of nan iterations:   0 |");
}

}  // namespace
}  // namespace quickstart
