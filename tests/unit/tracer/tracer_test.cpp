#include "qualify/tracer/tracer.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "qualify/base/files.hpp"
#include "qualify/traces/localize.hpp"
#include "qualify/traces/trace_set.hpp"
#include "settings.hpp"
#include "support/temp_folder.hpp"
#include "training.hpp"

namespace qualify {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Lanes = std::array<std::uint64_t, 2>;

std::uint64_t device(const std::vector<float>& values, const std::vector<std::int64_t>& shape,
                     Lanes& lanes) {
  return qtrace_device_digest(QTRACE_FLOAT32, values.data(), shape.data(), shape.size(),
                              lanes.data());
}

TEST(DeviceDigest, SeesEveryBitPositionAndShape) {
  std::mt19937 random(1);
  std::vector<float> values(999);
  for (float& value : values) value = static_cast<float>(random()) / 7.0F;
  Lanes plain;
  const std::uint64_t multiset = device(values, {999}, plain);
  Lanes other;
  EXPECT_EQ(device(values, {27, 37}, other), multiset);
  EXPECT_NE(other, plain);  // another shape
  std::swap(values[3], values[700]);
  EXPECT_EQ(device(values, {999}, other), multiset);  // the same values
  EXPECT_NE(other, plain);                            // in another order
  std::swap(values[3], values[700]);
  for (const std::size_t at : {0U, 500U, 998U}) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &values[at], sizeof bits);
    bits ^= 1;
    std::memcpy(&values[at], &bits, sizeof bits);
    EXPECT_NE(device(values, {999}, other), multiset);
    EXPECT_NE(other, plain);
    bits ^= 1;
    std::memcpy(&values[at], &bits, sizeof bits);
  }
  device(values, {999}, other);
  EXPECT_EQ(other, plain);
}

TEST(DeviceDigest, IsTheSumOfWhatItsHeaderSays) {
  // Written anew from the formula, for one element.
  const auto mix = [](std::uint64_t x) {
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31U);
  };
  const std::vector<std::int32_t> value = {41};
  Lanes empty;
  Lanes one;
  qtrace_device_digest(QTRACE_INT32, value.data(), nullptr, 0, one.data());
  const std::int64_t none = 0;
  qtrace_device_digest(QTRACE_INT32, value.data(), &none, 1, empty.data());
  EXPECT_EQ(qtrace_device_digest(QTRACE_INT32, value.data(), nullptr, 0, one.data()), mix(41));
  EXPECT_NE(one, empty);
}

class Tracing : public ::testing::Test {
 protected:
  std::vector<Json> record(qtrace_level level, const char* plan = nullptr) {
    fs::remove(folder / "rank_000003.jsonl");
    const qtrace_options options{level, plan, 0};
    std::array<char, 256> error{};
    qtrace* trace = qtrace_open(folder.path().c_str(), 3, &options, error.data(), error.size());
    EXPECT_NE(trace, nullptr) << error.data();
    const std::vector<float> values(100, 1.5F);
    const std::int64_t shape[] = {10, 10};
    for (const std::int64_t iteration : {1, 2}) {
      const qtrace_where forward{iteration, 0, "forward"};
      const qtrace_value tensor{"layer.0.weight",
                                QTRACE_TENSOR,
                                QTRACE_OUTPUT,
                                QTRACE_FLOAT32,
                                values.data(),
                                shape,
                                2,
                                nullptr,
                                nullptr,
                                -1,
                                -1};
      qtrace_record(trace, &forward, &tensor);
      qtrace_record(trace, &forward, &tensor);
      qtrace_value sum = tensor;
      sum.name = "sum";
      sum.kind = QTRACE_COLLECTIVE;
      sum.op = "all-reduce";
      sum.group = "dp.0";
      sum.group_seq = 4;
      qtrace_record(trace, &forward, &sum);
      const qtrace_where train{iteration, -1, "train"};
      const qtrace_value loss{"loss",
                              QTRACE_METRIC,
                              QTRACE_NO_ROLE,
                              QTRACE_FLOAT32,
                              values.data(),
                              nullptr,
                              0,
                              nullptr,
                              nullptr,
                              -1,
                              -1};
      qtrace_record(trace, &train, &loss);
      qtrace_event(trace, &train, "iteration.end", QTRACE_PHASE);
    }
    EXPECT_EQ(qtrace_close(trace), 0);
    std::istringstream lines(read_file(folder / "rank_000003.jsonl").value());
    std::vector<Json> records;
    for (std::string line; std::getline(lines, line);) records.push_back(Json::parse(line));
    return records;
  }
  std::vector<std::string> names(const std::vector<Json>& records) {
    std::vector<std::string> all;
    for (const Json& one : records) {
      all.push_back(one["name"].get<std::string>() +
                    (one.contains("tensor") ? ":" + one["tensor"]["mode"].get<std::string>() : ""));
    }
    return all;
  }
  test::TempFolder folder;
};

TEST_F(Tracing, WritesNamesAsTheyAreGiven) {
  const qtrace_options options{QTRACE_L0, nullptr, 1};
  std::array<char, 256> error{};
  qtrace* trace = qtrace_open(folder.path().c_str(), 3, &options, error.data(), error.size());
  ASSERT_NE(trace, nullptr) << error.data();
  const std::vector<std::string> given = {"plain",         "\"quoted\"",   "back\\slash\\",
                                          "line\nand\x01", "l\xC3\xA4yer", "\x1F"};
  const qtrace_where where{-1, 12, "a \"phase\""};
  for (const std::string& name : given) qtrace_event(trace, &where, name.c_str(), QTRACE_PHASE);
  EXPECT_EQ(qtrace_close(trace), 0);
  std::istringstream lines(read_file(folder / "rank_000003.jsonl").value());
  std::vector<std::string> found;
  for (std::string line; std::getline(lines, line);) {
    const Json record = Json::parse(line);
    found.push_back(record["name"]);
    EXPECT_EQ(record["phase"], "a \"phase\"");
    EXPECT_EQ(record["iteration"], -1);
    EXPECT_EQ(record["microbatch"], 12);
    EXPECT_GT(record["fields"]["time_ns"], 0);
  }
  EXPECT_EQ(found, given);
}

TEST_F(Tracing, SummarisesAtL0AndRecordsEveryValueAtL1AndL2) {
  const auto l0 = names(record(QTRACE_L0));
  ASSERT_EQ(l0.size(), 8U);
  EXPECT_THAT(std::vector(l0.begin(), l0.begin() + 4),
              ElementsAre("summary.tensor:sample", "summary.collective.all-reduce:sample", "loss",
                          "iteration.end"));
  const auto l1 = names(record(QTRACE_L1));
  EXPECT_THAT(std::vector(l1.begin(), l1.begin() + 5),
              ElementsAre("layer.0.weight:device", "layer.0.weight:device", "sum:device",
                          "loss:device", "iteration.end"));
  const auto l2 = names(record(QTRACE_L2));
  EXPECT_EQ(l2.front(), "layer.0.weight:full");
}

TEST_F(Tracing, FollowsACapturePlan) {
  traces::CapturePlan plan;
  plan.level = traces::Level::L2;
  plan.ranks = {2, 3};
  plan.first_iteration = plan.last_iteration = 2;
  plan.phases = {"forward"};
  plan.sites = {"layer.0"};
  ASSERT_TRUE(write_file_atomic(folder / "plan.json", to_json(plan).dump()));
  const std::string file = (folder / "plan.json").string();
  const auto found = names(record(QTRACE_L0, file.c_str()));
  EXPECT_THAT(found,
              ElementsAre("summary.tensor:sample", "summary.collective.all-reduce:sample", "loss",
                          "iteration.end", "layer.0.weight:full", "layer.0.weight:full",
                          "summary.collective.all-reduce:sample", "loss", "iteration.end"));
  ASSERT_TRUE(write_file_atomic(folder / "plan.json", R"({"levl":"L2"})"));
  const qtrace_options options{QTRACE_L0, file.c_str(), 0};
  std::array<char, 256> error{};
  EXPECT_EQ(qtrace_open(folder.path().c_str(), 9, &options, error.data(), error.size()), nullptr);
  EXPECT_THAT(error.data(), HasSubstr("unknown member levl"));
}

TEST_F(Tracing, TellsAtTheEndWhatCouldNotBeWritten) {
  const qtrace_options options{QTRACE_L0, nullptr, 0};
  std::array<char, 256> error{};
  EXPECT_EQ(qtrace_open("/nowhere", 0, &options, error.data(), error.size()), nullptr);
  EXPECT_THAT(error.data(), HasSubstr("/nowhere"));
  EXPECT_EQ(qtrace_close(nullptr), 0);
}

/// The quickstart's trainer, in-process.
class Training : public ::testing::Test {
 protected:
  quickstart::Settings settings(const char* name) {
    quickstart::Settings s;
    s.text = folder / "text";
    if (!fs::exists(s.text)) {
      std::ofstream text(s.text);
      std::mt19937 random(7);
      for (int i = 0; i < 4000; ++i) text << static_cast<char>('a' + random() % 20);
    }
    s.output = folder / name;
    s.ranks = 4;
    s.train_iters = 6;
    s.micro_batch_size = 16;
    s.hidden = 64;
    return s;
  }
  void train(const quickstart::Settings& s) {
    std::ostringstream log;
    const std::atomic<bool> stop = false;
    EXPECT_EQ(quickstart::train(s, log, stop), quickstart::Ending::finished);
  }
  Result<traces::Localization> localize(const char* a, const char* b) {
    const auto in_a = traces::TraceSet::open(folder / a, {});
    if (!in_a) return tl::unexpected(in_a.error());
    const auto in_b = traces::TraceSet::open(folder / b, {});
    if (!in_b) return tl::unexpected(in_b.error());
    return traces::localize(*in_a, *in_b, {});
  }
  test::TempFolder folder;
};

TEST_F(Training, OrderedLaunchesAreEqualAtEveryLevel) {
  for (const auto trace : {quickstart::Trace::L0, quickstart::Trace::L1, quickstart::Trace::full}) {
    fs::remove_all(folder / "a");
    fs::remove_all(folder / "b");
    for (const char* name : {"a", "b"}) {
      auto s = settings(name);
      s.trace = trace;
      train(s);
    }
    const auto found = localize("a", "b");
    ASSERT_TRUE(found) << found.error().describe();
    EXPECT_EQ(found->outcome, traces::Outcome::equal) << to_json(*found).dump(1);
  }
}

TEST_F(Training, AnotherSeedOrLevelIsRefused) {
  train(settings("a"));
  auto s = settings("b");
  s.seed = 99;
  train(s);
  EXPECT_EQ(localize("a", "b").error().code, Errc::refused);
  auto level = settings("c");
  level.trace = quickstart::Trace::L1;
  train(level);
  EXPECT_EQ(localize("a", "c").error().code, Errc::refused);
}

TEST_F(Training, ASumInArrivalOrderIsLocalisedToTheCollectiveItself) {
  // Which order ranks arrive in is the machine's choice: some pair of launches parts.
  traces::Localization found;
  for (int attempt = 0; attempt < 20 && found.outcome != traces::Outcome::differs; ++attempt) {
    fs::remove_all(folder / "a");
    fs::remove_all(folder / "b");
    for (const char* name : {"a", "b"}) {
      auto s = settings(name);
      s.reduction = quickstart::Reduction::arrival;
      train(s);
    }
    found = localize("a", "b").value();
  }
  if (found.outcome != traces::Outcome::differs) GTEST_SKIP() << "one arrival order in 20 launches";
  ASSERT_EQ(found.frontier.size(), 1U) << to_json(found).dump(1);
  EXPECT_EQ(found.frontier[0].cause, traces::Cause::collective);
  EXPECT_EQ(found.frontier[0].place.site, "gradient");
  EXPECT_TRUE(found.frontier[0].one_event);
  EXPECT_EQ(found.frontier[0].ranks.size(), 4U);
}

}  // namespace
}  // namespace qualify
