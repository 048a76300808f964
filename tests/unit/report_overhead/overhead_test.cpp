#include "qualify/report/overhead.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "support/step_simulation.hpp"

namespace qualify::report {
namespace {

statistics::OverheadRequest request_of(double overhead, int pairs = 4) {
  test::Scenario s;
  s.overhead = overhead;
  s.step_noise = 0.01;
  s.stall_rate = 0.03;
  s.pairs = pairs;
  std::mt19937_64 random(3);
  auto request = test::simulate(s, random, statistics::decision_policy("change-overhead").value());
  request.calendar.init_steps = 1;
  request.calendar.warmup_steps = 3;
  request.calendar.checkpoint = {20, 1};
  return request;
}

std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(OverheadText, FitsEightyColumnsWhateverTheVerdict) {
  for (const double overhead : {0.0, 0.03, 0.09}) {
    for (const std::size_t pairs : {0U, 1U, 2U, 4U}) {
      auto request = request_of(overhead);
      request.pairs.resize(pairs);
      const auto analysis = statistics::analyse(request);
      const std::string text = overhead_text(analysis, 80);
      EXPECT_LE(longest_line(text), 80U) << text;
      EXPECT_NE(text.find(statistics::name_of(analysis.verdict)), std::string::npos);
    }
  }
}

TEST(OverheadText, ShowsEveryPairAndWhatWasExcluded) {
  const auto request = request_of(0.03);
  const std::string text = overhead_text(statistics::analyse(request), 80);
  for (const char* part : {"pair 1", "pair 4", "placebo", "AB", "BA", "warm-up 24 steps",
                           "checkpoint", "95% interval", "Hodges-Lehmann", "Fieller"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(OverheadText, ControlCharactersInNamesAreShownAsQuestionMarks) {
  auto request = request_of(0.03);
  request.pairs[0].name = "a\x1b[31mb";
  const std::string text = overhead_text(statistics::analyse(request), 80);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(OverheadPlot, HoldsBothArmsTheExclusionsTheBandsAndTheInterval) {
  const auto request = request_of(0.03);
  const std::string svg = overhead_plot(request, statistics::analyse(request));
  EXPECT_EQ(count(svg, "<polyline"), 2U * 5U);
  EXPECT_GT(count(svg, "#b0b0b0"), 5U);  // shaded stripes
  for (const char* part : {"needs-decision", "pass", "fail", "estimate, 95%", "</svg>"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(OverheadPlot, IsDrawnForFaultyAndMissingDataToo) {
  auto request = request_of(0.03);
  request.pairs[1].deterministic = {};
  request.pairs[2].nondeterministic.seconds[10] = NAN;
  request.pairs[3].name = "<script>&\"";
  const std::string svg = overhead_plot(request, statistics::analyse(request));
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
  EXPECT_EQ(svg.find(">nan"), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
  request.pairs.clear();
  EXPECT_NE(overhead_plot(request, statistics::analyse(request)).find("</svg>"), std::string::npos);
}

TEST(OverheadPlot, ThousandsOfStepsStayASmallPicture) {
  test::Scenario s;
  s.steps = 20000;
  s.pairs = 1;
  std::mt19937_64 random(3);
  const auto request =
      test::simulate(s, random, statistics::decision_policy("change-overhead").value());
  EXPECT_LT(overhead_plot(request, statistics::analyse(request)).size(), 200000U);
}

}  // namespace
}  // namespace qualify::report
