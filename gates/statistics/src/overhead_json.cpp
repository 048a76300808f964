#include <cmath>
#include <nlohmann/json.hpp>

#include "qualify/statistics/overhead.hpp"

namespace qualify::statistics {

namespace {

template <class T>
Json optional(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// JSON has no infinities and no NaN.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json ratio(double log_ratio) {
  return number(std::exp(log_ratio));
}

Json ratios(const std::optional<Interval>& interval) {
  if (!interval) return nullptr;
  return Json{{"low", ratio(interval->low)}, {"high", ratio(interval->high)}};
}

Json faults_json(const std::vector<Fault>& faults) {
  Json all = Json::array();
  for (const Fault& f : faults) all.push_back({{"code", f.code}, {"message", f.message}});
  return all;
}

Json excluded(const Window& window) {
  Json all = Json::object();
  for (const auto& [reason, what] : window.excluded) {
    all[name_of(reason)] = {{"steps", what.count}, {"seconds", number(what.seconds)}};
  }
  return all;
}

Json window_json(const Window& window, const std::optional<WindowSummary>& summary) {
  Json value{{"excluded", excluded(window)}, {"steady", nullptr}};
  if (!summary) return value;
  const WindowSummary& s = *summary;
  value["steady"] = {
      {"steps", s.steps},
      {"typical_seconds", s.typical},
      {"hodges_lehmann_seconds", s.hodges_lehmann},
      {"mean_seconds", s.mean},
      {"stall_burden", s.stall_burden},
      {"stalls_per_1000", s.stalls_per_1000},
      {"autocorrelation_lag_1", s.lag1},
      {"effective_steps", s.effective_steps},
      {"mser5", {{"batches", s.transient.batches}, {"discarded", s.transient.discarded}}},
      {"shift_after_step", s.shift ? Json(window.step[s.shift->at - 1]) : Json(nullptr)}};
  return value;
}

Json slowest_json(const std::optional<SlowestRank>& slowest) {
  if (!slowest) return nullptr;
  return {{"rank", slowest->rank},
          {"ranks", slowest->ranks},
          {"typical_seconds", slowest->typical},
          {"to_median_rank", ratio(slowest->above)}};
}

Json straggler_json(const std::optional<Straggler>& straggler) {
  if (!straggler) return nullptr;
  return {{"rank", straggler->rank},
          {"slowest_in", straggler->slowest_in},
          {"launches", straggler->launches},
          {"to_median_rank", ratio(straggler->above)}};
}

Json pair_json(const PairResult& pair) {
  return Json{{"name", pair.name},
              {"order", pair.order ? Json(*pair.order == Order::ab ? "AB" : "BA") : Json(nullptr)},
              {"ratio", pair.log_ratio ? ratio(*pair.log_ratio) : Json(nullptr)},
              {"deterministic", window_json(pair.windows.a, pair.deterministic)},
              {"nondeterministic", window_json(pair.windows.b, pair.nondeterministic)},
              {"slowest_rank",
               {{"deterministic", slowest_json(pair.slowest_deterministic)},
                {"nondeterministic", slowest_json(pair.slowest_nondeterministic)}}},
              {"faults", faults_json(pair.faults)}};
}

}  // namespace

Json to_json(const OverheadAnalysis& analysis) {
  Json value{{"decision", analysis.policy.name},
             {"verdict", name_of(analysis.verdict)},
             {"reasons", analysis.reasons},
             {"faults", faults_json(analysis.faults)},
             {"limits", analysis.limits},
             {"ratio", analysis.estimate ? ratio(analysis.estimate->value) : Json(nullptr)},
             {"one_sided_bounds", ratios(analysis.bounds)},
             {"one_sided_alpha", analysis.alpha},
             {"interval_95", ratios(analysis.interval)},
             {"estimator", analysis.crossover_used ? "ab-ba" : "paired-t"},
             {"period_ratio", analysis.period ? ratio(analysis.period->value) : Json(nullptr)},
             {"sign_flip_p", optional(analysis.sign_flip_p)},
             {"hodges_lehmann_ratio",
              analysis.hodges_lehmann ? ratio(*analysis.hodges_lehmann) : Json(nullptr)},
             {"fieller_95", nullptr},
             {"placebo_ratio",
              analysis.placebo_log_ratio ? ratio(*analysis.placebo_log_ratio) : Json(nullptr)},
             {"further_pairs", optional(analysis.further_pairs)},
             {"next_look", optional(analysis.next_look)},
             {"best_steps_per_launch", optional(analysis.best_steps)},
             {"stall_burden",
              {{"deterministic", analysis.stall_burden_deterministic},
               {"nondeterministic", analysis.stall_burden_nondeterministic}}},
             {"clocks", analysis.clocks.empty() ? Json(nullptr) : Json(analysis.clocks)},
             {"straggler",
              {{"deterministic", straggler_json(analysis.straggler_deterministic)},
               {"nondeterministic", straggler_json(analysis.straggler_nondeterministic)}}}};
  if (analysis.fieller && analysis.fieller->interval) {
    value["fieller_95"] = {{"low", analysis.fieller->interval->low},
                           {"high", analysis.fieller->interval->high}};
  }
  value["goals"] = Json::array();
  for (const auto& g : analysis.goals) {
    value["goals"].push_back(
        {{"name", g.goal.name}, {"below", g.goal.below}, {"met", optional(g.met)}});
  }
  value["pairs"] = Json::array();
  for (const PairResult& pair : analysis.pairs) value["pairs"].push_back(pair_json(pair));
  value["placebo"] = Json::array();
  for (const PairResult& pair : analysis.placebo) value["placebo"].push_back(pair_json(pair));
  return value;
}

}  // namespace qualify::statistics
