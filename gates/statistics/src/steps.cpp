#include "qualify/statistics/steps.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace qualify::statistics {

namespace {

/// Does (step - stride, step] meet [first, last]?
bool covers(std::int64_t step, std::int64_t stride, std::int64_t first, std::int64_t last) {
  return step >= first && step - stride + 1 <= last;
}

bool recurs(const Recurring& event, std::int64_t step, std::int64_t stride) {
  if (event.every <= 0) return false;
  // The event happens at multiples of `every` and disturbs [multiple, multiple + after].
  const std::int64_t multiple = step / event.every * event.every;
  return multiple > 0 && covers(step, stride, multiple, multiple + event.after);
}

std::int64_t stride_of(const StepSeries& series) {
  std::int64_t stride = 0;
  for (std::size_t i = 1; i < series.step.size(); ++i) {
    const std::int64_t gap = series.step[i] - series.step[i - 1];
    if (gap > 0 && (stride == 0 || gap < stride)) stride = gap;
  }
  // The first value of a log with an interval of 5 may be step 1, the next 5: not a gap of 4.
  if (series.step.size() > 2 && series.step[1] - series.step[0] == stride) {
    std::int64_t rest = 0;
    for (std::size_t i = 2; i < series.step.size(); ++i) {
      const std::int64_t gap = series.step[i] - series.step[i - 1];
      if (gap > 0 && (rest == 0 || gap < rest)) rest = gap;
    }
    stride = std::max(stride, rest);
  }
  return std::max<std::int64_t>(stride, 1);
}

void check_order(const StepSeries& series, std::vector<Fault>& faults) {
  for (std::size_t i = 1; i < series.step.size(); ++i) {
    if (series.step[i] == series.step[i - 1]) {
      faults.push_back({"duplicate-step", series.source + ": step " +
                                              std::to_string(series.step[i]) + " is there twice"});
      return;
    }
    if (series.step[i] < series.step[i - 1]) {
      faults.push_back(
          {"duplicate-step", series.source + ": step " + std::to_string(series.step[i]) +
                                 " comes after step " + std::to_string(series.step[i - 1])});
      return;
    }
  }
}

Window cut(const StepSeries& series, const ExclusionCalendar& calendar, std::int64_t stride,
           std::vector<Fault>& faults) {
  Window window;
  std::int64_t previous = 0;
  bool missing = false;
  bool bad = false;
  for (std::size_t i = 0; i < series.step.size(); ++i) {
    const std::int64_t step = series.step[i];
    const double seconds = series.seconds[i];
    const auto reason = excluded_by(calendar, step, stride, series.step.front());
    if (i > 0 && !missing) {
      // Every step of the grid between two logged ones must be excluded by calendar.
      for (std::int64_t gone = previous + stride; gone < step && !missing; gone += stride) {
        if (excluded_by(calendar, gone, stride, series.step.front())) continue;
        faults.push_back(
            {"missing-step", series.source + ": step " + std::to_string(gone) + " is missing"});
        missing = true;
      }
    }
    previous = step;
    if (reason) {
      auto& excluded = window.excluded[*reason];
      ++excluded.count;
      if (std::isfinite(seconds)) excluded.seconds += seconds;
      continue;
    }
    if (!(std::isfinite(seconds) && seconds > 0)) {
      if (!bad) {
        faults.push_back(
            {"bad-time", series.source + ": the time of step " + std::to_string(step) + " is " +
                             (std::isnan(seconds) ? "NaN" : "not positive and finite")});
      }
      bad = true;
      continue;
    }
    window.step.push_back(step);
    window.seconds.push_back(seconds);
  }
  return window;
}

}  // namespace

const char* name_of(Exclusion reason) {
  switch (reason) {
    case Exclusion::init:
      return "init";
    case Exclusion::first_iteration:
      return "first-iterations";
    case Exclusion::warmup:
      return "warm-up";
    case Exclusion::evaluation:
      return "evaluation";
    case Exclusion::checkpoint:
      return "checkpoint";
    case Exclusion::profiler:
      return "profiler";
    case Exclusion::restart:
      return "restart";
  }
  return "unknown";
}

std::optional<Exclusion> excluded_by(const ExclusionCalendar& calendar, std::int64_t step,
                                     std::int64_t stride, std::int64_t first_step) {
  const std::int64_t begin = step - stride + 1;  // first step that this value covers
  const std::int64_t init = first_step + calendar.init_steps;
  const std::int64_t compiled = init + calendar.first_iterations;
  const std::int64_t warm = compiled + calendar.warmup_steps;
  // The first logged value covers the steps before it: it counts from its own step.
  const std::int64_t at = std::max(begin, first_step);
  if (at < init) return Exclusion::init;
  if (at < compiled) return Exclusion::first_iteration;
  if (at < warm) return Exclusion::warmup;
  if (recurs(calendar.evaluation, step, stride)) return Exclusion::evaluation;
  if (recurs(calendar.checkpoint, step, stride)) return Exclusion::checkpoint;
  for (const StepRange& range : calendar.profiler) {
    if (covers(step, stride, range.first, range.last)) return Exclusion::profiler;
  }
  const std::int64_t again =
      calendar.init_steps + calendar.first_iterations + calendar.warmup_steps;
  for (const std::int64_t restart : calendar.restarts) {
    if (again > 0 && covers(step, stride, restart, restart + again - 1)) return Exclusion::restart;
  }
  return std::nullopt;
}

PairWindows steady_windows(const StepSeries& a, const StepSeries& b,
                           const ExclusionCalendar& calendar) {
  PairWindows pair;
  for (const StepSeries* series : {&a, &b}) {
    if (series->step.size() != series->seconds.size() || series->step.empty()) {
      pair.faults.push_back({"too-few-steps", series->source + ": no step times"});
    }
  }
  if (!pair.faults.empty()) return pair;
  check_order(a, pair.faults);
  check_order(b, pair.faults);
  if (!pair.faults.empty()) return pair;

  pair.stride = stride_of(a);
  if (a.step.front() != b.step.front() || a.step.back() != b.step.back()) {
    const auto extent = [](const StepSeries& s) {
      return s.source + " has steps " + std::to_string(s.step.front()) + " to " +
             std::to_string(s.step.back());
    };
    pair.faults.push_back({"unequal-lengths", extent(a) + ", " + extent(b)});
  } else if (stride_of(b) != pair.stride) {
    pair.faults.push_back(
        {"unequal-lengths", a.source + " logs every " + std::to_string(pair.stride) + " steps, " +
                                b.source + " every " + std::to_string(stride_of(b))});
  }
  pair.a = cut(a, calendar, pair.stride, pair.faults);
  pair.b = cut(b, calendar, pair.stride, pair.faults);
  if (!pair.faults.empty()) return pair;
  if (pair.a.step != pair.b.step) {  // can't be told from the calendar: one arm lacks a step
    pair.faults.push_back(
        {"missing-step", a.source + " and " + b.source + " do not have the same steps"});
  }
  if (pair.a.step.size() < kLeastSteadySteps) {
    pair.faults.push_back({"too-few-steps", a.source + ": " + std::to_string(pair.a.step.size()) +
                                                " steady steps after exclusions; at least " +
                                                std::to_string(kLeastSteadySteps) + " are needed"});
  }
  return pair;
}

}  // namespace qualify::statistics
