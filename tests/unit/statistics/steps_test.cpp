#include "qualify/statistics/steps.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

namespace qualify::statistics {
namespace {

StepSeries run_of(std::size_t steps, double seconds = 2.0, std::int64_t stride = 1) {
  StepSeries s;
  s.source = "run";
  for (std::size_t i = 1; i <= steps; ++i) {
    s.step.push_back(static_cast<std::int64_t>(i) * stride);
    s.seconds.push_back(seconds + 0.001 * static_cast<double>(i % 7));
  }
  return s;
}

std::vector<std::string> codes(const PairWindows& pair) {
  std::vector<std::string> all;
  for (const Fault& f : pair.faults) all.push_back(f.code);
  return all;
}

using Codes = std::vector<std::string>;

TEST(Calendar, ThePrefixIsInitThenFirstIterationsThenWarmUp) {
  ExclusionCalendar c;
  c.init_steps = 1;
  c.first_iterations = 2;
  c.warmup_steps = 3;
  const auto pair = steady_windows(run_of(60), run_of(60), c);
  EXPECT_EQ(codes(pair), Codes{});
  EXPECT_EQ(pair.a.step.front(), 7);
  EXPECT_EQ(pair.a.excluded.at(Exclusion::init).count, 1U);
  EXPECT_EQ(pair.a.excluded.at(Exclusion::first_iteration).count, 2U);
  EXPECT_EQ(pair.a.excluded.at(Exclusion::warmup).count, 3U);
  EXPECT_NEAR(pair.a.excluded.at(Exclusion::warmup).seconds, 6 + 0.001 * (4 + 5 + 6), 1e-12);
}

TEST(Calendar, RecurringEventsDisturbTheirStepAndTheNext) {
  ExclusionCalendar c;
  c.init_steps = 0;
  c.evaluation = {20, 1};
  c.checkpoint = {25, 0};
  EXPECT_EQ(excluded_by(c, 20, 1, 1), Exclusion::evaluation);
  EXPECT_EQ(excluded_by(c, 21, 1, 1), Exclusion::evaluation);
  EXPECT_EQ(excluded_by(c, 22, 1, 1), std::nullopt);
  EXPECT_EQ(excluded_by(c, 25, 1, 1), Exclusion::checkpoint);
  EXPECT_EQ(excluded_by(c, 26, 1, 1), std::nullopt);
  EXPECT_EQ(excluded_by(c, 1, 1, 1), std::nullopt);
}

TEST(Calendar, ProfilerAndRestartsAreRanges) {
  ExclusionCalendar c;
  c.init_steps = 1;
  c.warmup_steps = 4;
  c.profiler = {{30, 33}};
  c.restarts = {50};
  EXPECT_EQ(excluded_by(c, 30, 1, 1), Exclusion::profiler);
  EXPECT_EQ(excluded_by(c, 34, 1, 1), std::nullopt);
  EXPECT_EQ(excluded_by(c, 50, 1, 1), Exclusion::restart);
  EXPECT_EQ(excluded_by(c, 54, 1, 1), Exclusion::restart);
  EXPECT_EQ(excluded_by(c, 55, 1, 1), std::nullopt);
}

TEST(Calendar, AValueThatCoversAnExcludedStepIsExcluded) {
  ExclusionCalendar c;
  c.init_steps = 0;
  c.checkpoint = {12, 0};
  // logged every 5 steps: the value at 15 covers 11..15, the one at 20 covers 16..20
  EXPECT_EQ(excluded_by(c, 15, 5, 5), Exclusion::checkpoint);
  EXPECT_EQ(excluded_by(c, 20, 5, 5), std::nullopt);
  EXPECT_EQ(excluded_by(c, 25, 5, 5), Exclusion::checkpoint);  // 21..25 holds 24
}

TEST(Calendar, DoesNotLookAtTheTimes) {
  StepSeries slow = run_of(60);
  slow.seconds[30] = 500;
  const auto pair = steady_windows(slow, run_of(60), {});
  EXPECT_EQ(pair.a.step, pair.b.step);
  EXPECT_EQ(pair.a.seconds[29], 500);
}

TEST(SteadyWindows, AMissingStepIsAFaultUnlessTheCalendarExcludesIt) {
  StepSeries gap = run_of(60);
  gap.step.erase(gap.step.begin() + 39);
  gap.seconds.erase(gap.seconds.begin() + 39);
  EXPECT_EQ(codes(steady_windows(gap, run_of(60), {})), Codes{"missing-step"});
  ExclusionCalendar c;
  c.profiler = {{40, 40}};
  const auto pair = steady_windows(gap, run_of(60), c);
  EXPECT_EQ(codes(pair), Codes{});
  EXPECT_EQ(pair.a.step, pair.b.step);
}

TEST(SteadyWindows, NamesWhatIsWrong) {
  EXPECT_EQ(codes(steady_windows(run_of(60), run_of(59), {})), Codes{"unequal-lengths"});
  EXPECT_EQ(codes(steady_windows(run_of(60), run_of(12, 2.0, 5), {}))[0], "unequal-lengths");
  EXPECT_EQ(codes(steady_windows(run_of(20), run_of(20), {})), Codes{"too-few-steps"});
  EXPECT_EQ(codes(steady_windows(run_of(21), run_of(21), {})), Codes{});
  EXPECT_EQ(codes(steady_windows({}, run_of(21), {})), Codes{"too-few-steps"});
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()}) {
    StepSeries s = run_of(60);
    s.seconds[40] = bad;
    EXPECT_EQ(codes(steady_windows(s, run_of(60), {})), Codes{"bad-time"}) << bad;
    s = run_of(60);
    s.seconds[0] = bad;  // excluded by calendar: Megatron logs no time for the first step
    EXPECT_EQ(codes(steady_windows(s, run_of(60), {})), Codes{}) << bad;
  }
  StepSeries twice = run_of(60);
  twice.step[10] = twice.step[9];
  EXPECT_EQ(codes(steady_windows(twice, run_of(60), {})), Codes{"duplicate-step"});
}

TEST(SteadyWindows, ALogIntervalIsNotAGap) {
  StepSeries s = run_of(60, 2.0, 5);
  s.step.insert(s.step.begin(), 1);  // the first value is logged at step 1
  s.seconds.insert(s.seconds.begin(), NAN);
  const auto pair = steady_windows(s, s, {});
  EXPECT_EQ(codes(pair), Codes{});
  EXPECT_EQ(pair.stride, 5);
}

Window window_of(const std::vector<double>& seconds) {
  Window w;
  w.seconds = seconds;
  w.step.resize(seconds.size());
  std::iota(w.step.begin(), w.step.end(), 1);
  return w;
}

TEST(WindowSummary, StallsAreBesideTheTypicalStep) {
  std::vector<double> s(40, 12.0);
  for (std::size_t i = 0; i < s.size(); ++i) s[i] += 0.01 * static_cast<double>(i % 3);
  s[20] = 100;
  const auto w = summarise(window_of(s), 0.01).value();
  EXPECT_NEAR(w.typical, 12.01, 1e-9);
  EXPECT_NEAR(w.stalls_per_1000, 25, 1e-9);
  EXPECT_NEAR(w.stall_burden, (100 - 1.5 * w.typical) / (39 * 12.01 + 100), 1e-3);
  EXPECT_TRUE(w.faults.empty());
}

TEST(WindowSummary, AShiftIsFoundBesideStalls) {
  std::vector<double> s;
  for (int i = 0; i < 60; ++i) s.push_back((i < 35 ? 10.0 : 10.3) + 0.02 * (i * 7 % 5));
  s[10] = 90;
  s[50] = 90;
  const auto w = summarise(window_of(s), 0.01).value();
  ASSERT_FALSE(w.faults.empty());
  EXPECT_EQ(w.faults.back().code, "shift-in-window");
  ASSERT_TRUE(w.shift);
  EXPECT_EQ(w.shift->at, 35U);
}

TEST(WindowSummary, AShiftThatCannotMatterIsNoFault) {
  std::vector<double> s;
  for (int i = 0; i < 60; ++i) s.push_back((i < 35 ? 10.0 : 10.03) + 0.001 * (i * 7 % 5));
  EXPECT_TRUE(summarise(window_of(s), 0.01).value().faults.empty());
  EXPECT_FALSE(summarise(window_of(s), 0.001).value().faults.empty());
}

TEST(WindowSummary, ASeriesThatNeverSettlesHasNoSteadyState) {
  std::vector<double> s;
  for (int i = 0; i < 100; ++i) s.push_back((i < 75 ? 20.0 - 0.1 * i : 12.5) + 0.01 * (i % 3));
  const auto w = summarise(window_of(s), 0.01).value();
  ASSERT_FALSE(w.faults.empty());
  EXPECT_EQ(w.faults.front().code, "no-steady-state");
}

TEST(WindowSummary, ADriftThroughTheWindowIsNoSteadyState) {
  std::vector<double> s;
  for (int i = 0; i < 60; ++i) s.push_back(10 + 0.01 * i + 0.02 * (i * 7 % 5));
  const auto w = summarise(window_of(s), 0.01).value();
  ASSERT_FALSE(w.faults.empty());
  EXPECT_EQ(w.faults.front().code, "no-steady-state");
}

}  // namespace
}  // namespace qualify::statistics
