#pragma once

#include <gmock/gmock.h>

#include <bit>

#include "qualify/policy/judge.hpp"

namespace qualify::policy {

using evidence::Precision;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

inline constexpr std::int64_t kSteps = 5;

/// Two complete, equal runs in two allocations.
class EqualRuns : public ::testing::Test {
 protected:
  EqualRuns() {
    gate.name = "repeat";
    gate.arm = "det";
    gate.required_metrics = {"lm loss"};
    gate.steps = kSteps;
    for (const char* name : {"a", "b"}) {
      RunEvidence run;
      run.run = name;
      run.arm = "det";
      run.allocation = std::string("job-") + name;
      run.complete = true;
      run.metrics.wall_clock_marks = std::string("json-lines:") + name;
      runs.push_back(run);
      for (std::int64_t step = 1; step <= kSteps; ++step) {
        set(runs.size() - 1, "lm loss", step, 10.0F / static_cast<float>(step));
      }
    }
  }
  void set(std::size_t run, const std::string& metric, std::int64_t step, float value) {
    evidence::Series& series = runs[run].metrics.series[metric];
    series.name = metric;
    series.values.insert_or_assign(
        step, {std::bit_cast<std::uint32_t>(value), Precision::float32_bits, 0, ""});
  }
  void print(const std::string& metric, const std::string& text) {
    for (RunEvidence& run : runs) {
      evidence::Series& series = run.metrics.series[metric];
      series.name = metric;
      for (std::int64_t step = 1; step <= kSteps; ++step) {
        series.values.insert_or_assign(step, evidence::parse_number(text).value());
      }
    }
  }
  Judgement judged() const { return judge(gate, runs); }
  std::string first_reason() const { return judged().reasons.at(0); }

  Gate gate;
  std::vector<RunEvidence> runs;
};

}  // namespace qualify::policy
