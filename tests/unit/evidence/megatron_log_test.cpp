#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "qualify/base/files.hpp"
#include "qualify/evidence/metrics.hpp"
#include "support/temp_folder.hpp"

namespace qualify::evidence {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string line(int iteration, const std::string& loss, const std::string& end = " |\n") {
  return " [2025-05-09 06:11:" + std::to_string(10 + iteration) + "] iteration        " +
         std::to_string(iteration) +
         "/      10 | consumed samples:           32 | elapsed time per iteration (ms): 3286.6 | "
         "learning rate: 3.333333E-05 |" +
         loss +
         " loss scale: 1.0 | grad norm: 6.321 | num zeros: 256053424.0 | number of skipped "
         "iterations:   0 | number of nan iterations:   0" +
         end;
}

std::string loss(const std::string& value) {
  return " lm loss: " + value + " |";
}

struct Fixture : ::testing::Test {
  test::TempFolder folder;
  RunMetrics read(const std::string& content) {
    std::ofstream(folder / "log", std::ios::binary) << content;
    auto run = read_metrics(folder / "log");
    EXPECT_TRUE(run) << (run ? "" : run.error().describe());
    return run ? std::move(*run) : RunMetrics{};
  }
};
using MegatronLog = Fixture;

std::vector<std::string> codes(const RunMetrics& run) {
  std::vector<std::string> all;
  for (const auto& fault : run.faults) all.push_back(fault.code);
  return all;
}

TEST_F(MegatronLog, ReadsWhatIsPrintedWithItsDigits) {
  const auto run = read(line(1, loss("1.186396E+01")));
  const auto& value = run.series.at("lm loss").values.at(1);
  EXPECT_EQ(value.precision, Precision::printed);
  EXPECT_EQ(value.digits, 7);
  EXPECT_EQ(value.str(), "1.186396E+01");
  EXPECT_EQ(value.value(), 11.86396);
  EXPECT_EQ(run.series.at("num-zeros").values.at(1).precision, Precision::integer);
  EXPECT_EQ(run.series.at("num-zeros").values.at(1).bits, 256053424U);
  EXPECT_EQ(run.series.at("consumed samples").values.at(1).precision, Precision::integer);
  EXPECT_DOUBLE_EQ(run.series.at("iteration-time").values.at(1).value(), 3.2866);
  EXPECT_EQ(run.series.at("iteration-time").kind, MetricKind::wall_clock);
  EXPECT_EQ(run.format, "megatron-log");
  EXPECT_THAT(run.faults, IsEmpty());
}

TEST_F(MegatronLog, OtherRanksTextAroundALineDoesNotHideIt) {
  const auto run = read("warming up\n[rank7]: W iteration was late" +
                        line(1, loss("1.0E+01"), " | WARNING: a | b\n") +
                        "7: [rank7] hello iteration 5 of nothing\n" + line(2, loss("2.0E+01")));
  EXPECT_EQ(run.series.at("lm loss").values.size(), 2U);
  EXPECT_THAT(run.faults, IsEmpty());
}

TEST_F(MegatronLog, EveryCutOfTheLastLineIsAFaultOrHoldsNothing) {
  const std::string first = line(1, loss("1.186396E+01"));
  const std::string second = line(2, loss("1.186432E+01"));
  const auto number = second.find("iteration        2") + 18;
  for (std::size_t size = 1; size < second.size() - 2; ++size) {
    const auto run = read(first + second.substr(0, size));
    const bool faulty = !run.faults.empty();
    EXPECT_EQ(faulty, size >= number) << second.substr(0, size);
    const auto& values = run.series.at("lm loss").values;
    if (values.contains(2)) {
      EXPECT_EQ(values.at(2).str(), "1.186432E+01");
    }
  }
}

TEST_F(MegatronLog, ALossThatVanishedIsNamed) {
  const auto run = read(line(1, loss("1.0E+01")) + line(2, "") + line(3, loss("1.0E+01")));
  ASSERT_THAT(codes(run), ElementsAre("nan-vanished"));
  EXPECT_EQ(run.faults[0].metric, "lm loss");
  EXPECT_EQ(run.faults[0].iteration, 2);
}

TEST_F(MegatronLog, TheSecondLineAfterEachStartIsATwoStepAverage) {
  const auto run =
      read(line(1, loss("1.0E+01")) + line(2, loss("2.0E+01")) + line(3, loss("3.0E+01")) +
           line(2, loss("2.0E+01")) + line(3, loss("3.0E+01")) + line(4, loss("4.0E+01")));
  std::vector<std::int64_t> averaged;
  for (const auto& artefact : run.artefacts) {
    if (artefact.metric == "lm loss") averaged.push_back(artefact.iteration);
  }
  EXPECT_THAT(averaged, ElementsAre(2, 3));
  EXPECT_THAT(run.faults, IsEmpty());
}

TEST_F(MegatronLog, ARestartThatPrintsOtherValuesIsAFault) {
  const auto run =
      read(line(1, loss("1.0E+01")) + line(2, loss("2.0E+01")) + line(1, loss("1.5E+01")));
  EXPECT_THAT(codes(run), ElementsAre("duplicate-step"));
}

TEST_F(MegatronLog, EveryPublishedVariantIsRead) {
  std::ifstream file(std::filesystem::path(QUALIFY_TEST_DATA) / "logs/real_log_lines.txt");
  std::string block;
  std::string text;
  std::map<char, std::string> blocks;
  char current = 0;
  while (std::getline(file, text)) {
    if (text.starts_with("# ["))
      current = text[3];
    else if (current != 0)
      blocks[current] += text + "\n";
  }
  ASSERT_EQ(blocks.size(), 6U);
  EXPECT_EQ(read(blocks['A']).series.at("load_balancing_loss").values.size(), 3U);
  EXPECT_EQ(read(blocks['B']).series.at("num-zeros").values.at(3).bits, 0U);
  EXPECT_EQ(read(blocks['C']).series.at("dummy loss").values.size(), 1U);
  EXPECT_EQ(read(blocks['D']).series.at("mtp_1 loss").values.at(100).str(), "7.925096E+00");
  EXPECT_EQ(read(blocks['E']).series.at("learning-rate").values.at(122).digits, 4);
  const auto vanished = read(blocks['F']);
  EXPECT_THAT(codes(vanished), ElementsAre("nan-vanished"));
  EXPECT_TRUE(std::isnan(vanished.series.at("grad-norm").values.at(5426).value()));
  for (const char block_name : {'A', 'B', 'C', 'D', 'E'})
    EXPECT_THAT(read(blocks[block_name]).faults, IsEmpty()) << block_name;
}

TEST_F(MegatronLog, ALogWithoutIterationsIsNoMetricFile) {
  std::ofstream(folder / "log") << "hello iteration\n";
  const auto run = read_metrics(folder / "log");
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, Errc::invalid_input);
}

TEST_F(MegatronLog, AnIterationBehindAProgressBarThatNeverEndsItsLineIsRead) {
  const std::string line = " iteration 1/ 2 | lm loss: 1.0E+01 | number of nan iterations: 0 |\n";
  const std::string bar(3U << 20U, '=');
  const auto run = read(bar + line + line.substr(0, 11) + "2" + line.substr(12));
  EXPECT_EQ(run.series.at("lm loss").values.size(), 2U);
  EXPECT_THAT(codes(run), ::testing::IsEmpty());
  const auto hidden = read(line + " iteration 2/ 2 | lm loss: 9.0E+00 | x" + bar + "\n");
  EXPECT_THAT(codes(hidden), ::testing::Contains("malformed")) << "not dropped unsaid";
}

}  // namespace
}  // namespace qualify::evidence
