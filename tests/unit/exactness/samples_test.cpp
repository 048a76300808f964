#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "qualify/exactness/compare.hpp"

namespace qualify::exactness {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

const std::filesystem::path kData = QUALIFY_TEST_DATA;

evidence::RunMetrics read(const std::string& name) {
  auto run = evidence::read_metrics(kData / name);
  EXPECT_TRUE(run) << (run ? "" : run.error().describe());
  return run ? std::move(*run) : evidence::RunMetrics{};
}

const MetricComparison* metric(const Comparison& comparison, const std::string& name) {
  for (const auto& one : comparison.metrics) {
    if (one.metric == name) return &one;
  }
  return nullptr;
}

/// The first difference of two folders' event files, by a script that shares no code with us.
std::string truth(const std::string& a, const std::string& b) {
  const std::string command = std::string("python3 ") + QUALIFY_TRUTH + " " + (kData / a).string() +
                              " " + (kData / b).string();
  FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 512> line{};
  if (pipe == nullptr || std::fgets(line.data(), line.size(), pipe) == nullptr) return "no answer";
  ::pclose(pipe);
  std::string text = line.data();
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string first_of(const Comparison& comparison) {
  const MetricComparison* first = comparison.first_divergence();
  if (first == nullptr) return "equal";
  return fmt::format("{} {} {:08x} {:08x}", first->first->iteration, first->metric,
                     first->first->a.bits, first->first->b.bits);
}

TEST(Samples, TwoDeterministicLaunchesAreEqualAtE1) {
  const auto comparison = compare(read("h200/a"), read("h200/b"));
  EXPECT_EQ(comparison.outcome, Outcome::equal) << to_json(comparison).dump(1);
  EXPECT_EQ(comparison.level, Level::e1);
  EXPECT_FALSE(comparison.same_run_filed_twice);
  for (const char* name : {"lm loss", "grad-norm", "num-zeros", "params-norm", "learning-rate"}) {
    const auto* found = metric(comparison, name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->outcome, Outcome::equal) << name;
    EXPECT_EQ(found->compared, 30U) << name;
  }
  EXPECT_THAT(comparison.excluded, Contains("iteration-time"));
  EXPECT_EQ(truth("h200/a", "h200/b"), "equal");
}

TEST(Samples, WithoutDeterministicModeTheFirstDifferenceIsTheScripts) {
  for (const char* other : {"h200/a", "h200/b"}) {
    const auto comparison = compare(read(other), read("h200/c"));
    EXPECT_EQ(comparison.outcome, Outcome::differs);
    EXPECT_EQ(first_of(comparison), truth(other, "h200/c"));
  }
}

TEST(Samples, FromLogsAloneEqualityIsNotProvenAndTheReasonSaysWhatWould) {
  const auto comparison = compare(read("h200/a/log.txt"), read("h200/b/log.txt"));
  EXPECT_EQ(comparison.outcome, Outcome::inconclusive);
  EXPECT_FALSE(comparison.level);
  const auto* loss = metric(comparison, "lm loss");
  ASSERT_NE(loss, nullptr);
  EXPECT_THAT(loss->why, HasSubstr("printed with 7 digits; float32 needs 9"));
  EXPECT_THAT(loss->why, HasSubstr("TensorBoard"));
  EXPECT_EQ(loss->compared, 30U);
}

TEST(Samples, LogsAloneProveADifference) {
  const auto comparison = compare(read("h200/a/log.txt"), read("h200/c/log.txt"));
  EXPECT_EQ(comparison.outcome, Outcome::differs);
}

TEST(Samples, OneRunFiledTwiceIsNoComparisonOfTwoRuns) {
  const auto comparison = compare(read("tb_synthetic/run_a"), read("tb_synthetic/run_b_identical"));
  EXPECT_TRUE(comparison.same_run_filed_twice);
  EXPECT_EQ(comparison.outcome, Outcome::inconclusive);
  ASSERT_FALSE(comparison.reasons.empty());
  EXPECT_THAT(comparison.reasons.front(), HasSubstr("one run filed twice"));
}

TEST(Samples, OneUlpIsFoundWhereItIs) {
  const auto comparison =
      compare(read("tb_synthetic/run_a"), read("tb_synthetic/run_c_1ulp_lm_loss_step37"));
  EXPECT_EQ(comparison.outcome, Outcome::differs);
  const auto* first = comparison.first_divergence();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->metric, "lm loss");
  EXPECT_EQ(first->first->iteration, 37);
  EXPECT_EQ(first->first->ulps, 1U);
  EXPECT_EQ(first->differing, 1U);
  EXPECT_EQ(first_of(comparison),
            truth("tb_synthetic/run_a", "tb_synthetic/run_c_1ulp_lm_loss_step37"));
}

TEST(Samples, TheRecordCanBeMadeCanonical) {
  for (const char* other : {"h200/b", "h200/c"}) {
    EXPECT_TRUE(canonical_json(to_json(compare(read("h200/a"), read(other)))));
  }
}

}  // namespace
}  // namespace qualify::exactness
