#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "qualify/base/json.hpp"
#include "qualify/statistics/paired.hpp"
#include "qualify/statistics/planning.hpp"
#include "qualify/statistics/steps.hpp"

/// What determinism costs: pairs of launches in, a verdict with honest error bars out.
/// Method and its limits: docs/gates/performance.md. Pure; any thread.
namespace qualify::statistics {

/// A goal that is reported beside the verdict: met when the upper bound is below it.
struct Goal {
  std::string name;
  double below = 0;  ///< ratio of step times, 1.10 = 10% overhead
};

/// Thresholds on the ratio of step times det / nondet, judged by one-sided bounds L and U.
struct DecisionPolicy {
  std::string name;
  double pass_below = 0;          ///< pass: U below it
  double fail_above = 0;          ///< fail: L above it
  bool decision_between = false;  ///< L > pass_below and U < fail_above: needs-decision
  std::vector<Goal> goals;
};

/// "change-overhead": U < 1.01 pass, L > 1.07 fail, between needs-decision.
/// "mode-overhead": U < 1.10 (the production goal) pass, L > 1.10 fail.
/// Both report the production (1.10) and stretch (1.05) goals. Errors: invalid_input.
[[nodiscard]] Result<DecisionPolicy> decision_policy(const std::string& name);

enum class OverheadVerdict { pass, fail, needs_decision, inconclusive };
[[nodiscard]] const char* name_of(OverheadVerdict verdict);

/// DESIGN section 9's table. bounds: one-sided, on the mean of ln(det / nondet).
[[nodiscard]] OverheadVerdict decide(const DecisionPolicy& policy, const Interval& bounds);

/// The least even number of pairs >= `from` at which the same mean and standard deviation would
/// be decided, at one-sided `alpha`; absent when 200 pairs would not (the mean sits on a line).
[[nodiscard]] std::optional<std::uint32_t> pairs_to_decide(const DecisionPolicy& policy,
                                                           double mean, double deviation,
                                                           double alpha, std::uint32_t from);

/// Two launches on the same nodes. In a placebo pair both ran the same arm.
struct LaunchPair {
  std::string name;             ///< "pair 1"
  StepSeries deterministic;     ///< first launch of a placebo pair
  StepSeries nondeterministic;  ///< second launch of a placebo pair
  std::optional<Order> order;   ///< absent: not known
};

struct OverheadRequest {
  DecisionPolicy policy;
  ExclusionCalendar calendar;
  std::vector<Look> looks;  ///< registered before the first run; check_looks(looks, alpha) holds
  double alpha = 0.05;      ///< one-sided, over all looks
  std::vector<LaunchPair> pairs;
  std::vector<LaunchPair> placebo;
  bool placebo_required = false;
  double placebo_tolerance = 0.01;  ///< null: every placebo ratio is within it of 1
  double material = 0.01;           ///< smallest change inside a window that is a fault
};

struct PairResult {
  std::string name;
  std::optional<Order> order;
  std::optional<double> log_ratio;  ///< d = ln(m_det / m_nondet); absent with faulty windows
  std::optional<double> log_ratio_hodges_lehmann;
  PairWindows windows;
  std::optional<WindowSummary> deterministic;
  std::optional<WindowSummary> nondeterministic;
  std::optional<SlowestRank> slowest_deterministic;
  std::optional<SlowestRank> slowest_nondeterministic;
  std::vector<Fault> faults;
};

struct OverheadAnalysis {
  DecisionPolicy policy;
  OverheadVerdict verdict = OverheadVerdict::inconclusive;
  std::vector<std::string> reasons;  ///< most important first, never empty
  std::vector<Fault> faults;         ///< over all pairs; any of them makes it inconclusive
  std::vector<std::string> limits;   ///< what the verdict does not say
  std::vector<PairResult> pairs;
  std::vector<PairResult> placebo;

  std::optional<Estimate> estimate;  ///< of ln(det / nondet); k >= 2
  std::optional<Interval> bounds;    ///< one-sided at `alpha` each, log scale
  std::optional<Interval> interval;  ///< two-sided 95%, log scale
  double alpha = 0;                  ///< of the look that was judged (or of the next one)
  bool crossover_used = false;       ///< estimate from AB/BA, else paired t
  std::optional<Estimate> period;    ///< effect of running first, log scale
  std::optional<double> sign_flip_p;
  std::optional<double> hodges_lehmann;  ///< mean log ratio with Hodges-Lehmann windows
  std::optional<RatioOfMeans> fieller;   ///< cross-check on typical steps
  std::optional<double> placebo_log_ratio;
  std::optional<std::uint32_t> further_pairs;  ///< for inconclusive without faults
  std::optional<std::uint32_t> next_look;      ///< pairs at the next registered look
  std::optional<std::uint64_t> best_steps;     ///< Kalibera-Jones, at 100 steps a launch
  double stall_burden_deterministic = 0;       ///< means over pairs
  double stall_burden_nondeterministic = 0;
  std::optional<Straggler> straggler_deterministic;  ///< where runs logged their ranks' times
  std::optional<Straggler> straggler_nondeterministic;
  std::string clocks;  ///< what the GPUs said of their clocks, for people; empty = nobody asked
  struct GoalResult {
    Goal goal;
    std::optional<bool> met;  ///< absent: not decided
  };
  std::vector<GoalResult> goals;
};

/// Never fails: what is wrong with the data is a fault of the analysis and makes it inconclusive.
[[nodiscard]] OverheadAnalysis analyse(const OverheadRequest& request);

/// Ratio 1.046 -> "4.6%".
[[nodiscard]] std::string overhead_text(double log_ratio);

/// Shape: docs/gates/performance.md. Absent = null.
[[nodiscard]] Json to_json(const OverheadAnalysis& analysis);

}  // namespace qualify::statistics
