#include "qualify/statistics/overhead.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "qualify/statistics/exact.hpp"
#include "qualify/statistics/location.hpp"

namespace qualify::statistics {

namespace {

constexpr double kUnitsMixed = 100;      // ms against s is 1000; no real pair is beyond 100
constexpr double kLaunchCost = 100;      // steps that a restart costs
constexpr double kAssumedNoise = 0.005;  // of one pair, where too few pairs tell it

PairResult examine(const LaunchPair& pair, const OverheadRequest& request, bool placebo) {
  PairResult result;
  result.name = pair.name;
  result.order = pair.order;
  const auto fault = [&](const char* code, const std::string& text) {
    result.faults.push_back({code, pair.name + ": " + text});
  };
  if (!placebo && (pair.deterministic.says_deterministic == false ||
                   pair.nondeterministic.says_deterministic == true)) {
    fault("arms-swapped", pair.deterministic.source + " and " + pair.nondeterministic.source +
                              " say that they ran the other arm");
  }
  if (placebo && pair.deterministic.says_deterministic &&
      pair.nondeterministic.says_deterministic &&
      pair.deterministic.says_deterministic != pair.nondeterministic.says_deterministic) {
    fault("arms-swapped", "the two runs of a placebo pair must be of one arm");
  }
  result.windows = steady_windows(pair.deterministic, pair.nondeterministic, request.calendar);
  for (const Fault& f : result.windows.faults) fault(f.code.c_str(), f.message);
  if (!result.windows.faults.empty()) return result;

  const auto one = [&](const Window& window, const std::string& source) {
    auto summary = summarise(window, request.material);
    if (!summary) {
      fault("bad-time", source + ": " + summary.error().message);
      return std::optional<WindowSummary>{};
    }
    for (const Fault& f : summary->faults) fault(f.code.c_str(), source + ": " + f.message);
    return std::optional<WindowSummary>{*summary};
  };
  result.deterministic = one(result.windows.a, pair.deterministic.source);
  result.nondeterministic = one(result.windows.b, pair.nondeterministic.source);
  result.slowest_deterministic = slowest_rank(pair.deterministic.ranks, result.windows.a.step);
  result.slowest_nondeterministic =
      slowest_rank(pair.nondeterministic.ranks, result.windows.b.step);
  if (result.deterministic && result.nondeterministic) {
    result.log_ratio =
        std::log(result.deterministic->typical) - std::log(result.nondeterministic->typical);
    result.log_ratio_hodges_lehmann = std::log(result.deterministic->hodges_lehmann) -
                                      std::log(result.nondeterministic->hodges_lehmann);
  }
  return result;
}

/// Do two fingerprints share a word? One word a format: a log and an event file of one run filed
/// as two runs share what both folders hold.
bool shares_word(const std::string& a, const std::string& b) {
  std::istringstream words(a);
  for (std::string word; words >> word;) {
    std::istringstream others(b);
    for (std::string other; others >> other;) {
      if (word == other) return true;
    }
  }
  return false;
}

/// Faults that only show between launches: one run twice, milliseconds among seconds.
void cross_check(const OverheadRequest& request, OverheadAnalysis& analysis) {
  std::vector<const StepSeries*> all;
  for (const auto* list : {&request.pairs, &request.placebo}) {
    for (const LaunchPair& pair : *list) {
      all.push_back(&pair.deterministic);
      all.push_back(&pair.nondeterministic);
    }
  }
  std::optional<std::pair<double, const StepSeries*>> least;
  std::optional<std::pair<double, const StepSeries*>> most;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<double> good;
    for (const double s : all[i]->seconds) {
      if (std::isfinite(s) && s > 0) good.push_back(s);
    }
    if (const auto m = median(good)) {
      if (!least || *m < least->first) least = {*m, all[i]};
      if (!most || *m > most->first) most = {*m, all[i]};
    }
    for (std::size_t j = 0; j < i; ++j) {
      const bool marks = shares_word(all[i]->marks, all[j]->marks);
      const bool times =
          good.size() >= 2 && all[i]->step == all[j]->step &&
          std::equal(all[i]->seconds.begin(), all[i]->seconds.end(), all[j]->seconds.begin(),
                     all[j]->seconds.end(),
                     [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); });
      if (marks || times) {
        analysis.faults.push_back({"same-run", all[j]->source + " and " + all[i]->source +
                                                   " are one run filed twice: the " +
                                                   (times ? "step times" : "wall-clock marks") +
                                                   " are identical"});
      }
    }
  }
  if (least && most && most->first > kUnitsMixed * least->first) {
    analysis.faults.push_back({"units-mixed", least->second->source + " and " +
                                                  most->second->source +
                                                  " differ by more than a factor of 100: "
                                                  "milliseconds among seconds?"});
  }
}

void estimate(OverheadAnalysis& analysis) {
  std::vector<double> d;
  std::vector<double> hl;
  std::vector<double> ab;
  std::vector<double> ba;
  std::vector<double> det;
  std::vector<double> nondet;
  double launch_variance = 0;
  bool orders_known = true;
  for (const PairResult& pair : analysis.pairs) {
    if (!pair.log_ratio) return;  // a mean over what is left would hide the faulty pair
    d.push_back(*pair.log_ratio);
    hl.push_back(*pair.log_ratio_hodges_lehmann);
    det.push_back(pair.deterministic->typical);
    nondet.push_back(pair.nondeterministic->typical);
    if (pair.order) (*pair.order == Order::ab ? ab : ba).push_back(*pair.log_ratio);
    orders_known = orders_known && pair.order.has_value();
    const double k = static_cast<double>(analysis.pairs.size());
    analysis.stall_burden_deterministic += pair.deterministic->stall_burden / k;
    analysis.stall_burden_nondeterministic += pair.nondeterministic->stall_burden / k;
    for (const auto* w : {&*pair.deterministic, &*pair.nondeterministic}) {
      launch_variance += w->long_run_variance / (w->typical * w->typical) / (2 * k);
    }
  }
  if (d.empty()) return;
  analysis.hodges_lehmann = mean(hl).value();
  if (d.size() < 2) return;
  analysis.estimate = paired_t(d).value();
  if (orders_known && !ab.empty() && !ba.empty() && d.size() >= 3) {
    const auto cross = crossover(ab, ba).value();
    analysis.period = cross.period;
    // Few pairs: the plain t keeps its degrees of freedom; the period effect, balanced, widens it.
    if (d.size() > 4 && ab.size() >= 2 && ba.size() >= 2) {
      analysis.estimate = cross.effect;
      analysis.crossover_used = true;
    }
  }
  analysis.interval = analysis.estimate->interval(0.95);
  if (d.size() <= 20) analysis.sign_flip_p = sign_flip_p(d).value();
  if (auto ratio = fieller(det, nondet, 0.95)) analysis.fieller = *ratio;
  if (d.size() >= 3) {
    // Between launches alone: variance of a launch's log step, less what its steps explain.
    const double s = standard_deviation(d).value();
    const double steps = static_cast<double>(analysis.pairs[0].deterministic->steps);
    analysis.best_steps =
        best_steps_per_launch(launch_variance, s * s / 2 - launch_variance / steps, kLaunchCost);
  }
}

/// Reported beside the verdict, which is about the step as rank 0 sees it.
void find_stragglers(OverheadAnalysis& analysis) {
  std::vector<SlowestRank> det;
  std::vector<SlowestRank> nondet;
  for (const PairResult& pair : analysis.pairs) {
    if (pair.slowest_deterministic) det.push_back(*pair.slowest_deterministic);
    if (pair.slowest_nondeterministic) nondet.push_back(*pair.slowest_nondeterministic);
  }
  analysis.straggler_deterministic = straggler(det);
  analysis.straggler_nondeterministic = straggler(nondet);
}

/// Times that were printed in few digits tie, and ties look like certainty.
void check_resolution(const OverheadRequest& request, OverheadAnalysis& analysis) {
  constexpr double kShare = 0.1;  ///< of what is to be told apart
  const double allowed = kShare * std::log(request.policy.pass_below);
  const auto relative = [](const StepSeries& series) {
    const auto typical = median(series.seconds);
    return typical && *typical > 0 ? series.resolution / *typical : 0;
  };
  const LaunchPair* worst = nullptr;
  double most = allowed;
  for (const std::vector<LaunchPair>* pairs : {&request.pairs, &request.placebo}) {
    for (const LaunchPair& pair : *pairs) {
      const double width = relative(pair.deterministic) + relative(pair.nondeterministic);
      if (width <= most) continue;
      most = width;
      worst = &pair;
    }
  }
  if (worst == nullptr) return;
  analysis.faults.push_back({"coarse-times", "the times of " + worst->name +
                                                 " are printed too coarsely: they may be off by " +
                                                 overhead_text(std::log1p(most)) + " in all, and " +
                                                 overhead_text(std::log1p(allowed)) +
                                                 " is the most here; log them with more digits"});
}

void judge_placebo(const OverheadRequest& request, OverheadAnalysis& analysis) {
  if (analysis.placebo.empty()) {
    if (request.placebo_required) {
      analysis.faults.push_back({"no-placebo", "no placebo pair was run"});
    } else {
      analysis.limits.emplace_back("no placebo pair: a moving machine would go unnoticed");
    }
    return;
  }
  double worst = 0;
  for (const PairResult& pair : analysis.placebo) {
    if (!pair.log_ratio) return;  // its own fault is listed
    if (std::fabs(*pair.log_ratio) >= std::fabs(worst)) worst = *pair.log_ratio;
  }
  analysis.placebo_log_ratio = worst;
  if (std::fabs(worst) > std::log1p(request.placebo_tolerance)) {
    analysis.faults.push_back(
        {"machine-moved", "a placebo pair (one arm twice) differs by " + overhead_text(worst) +
                              ", more than " +
                              overhead_text(std::log1p(request.placebo_tolerance))});
  }
}

void check_balance(OverheadAnalysis& analysis) {
  std::size_t ab = 0;
  std::size_t ba = 0;
  for (const PairResult& pair : analysis.pairs) {
    if (!pair.order) {
      analysis.limits.emplace_back(
          "order of the pairs unknown: an effect of running first is not told from the overhead");
      return;
    }
    ++(*pair.order == Order::ab ? ab : ba);
  }
  if (analysis.pairs.size() >= 3 && std::max(ab, ba) - std::min(ab, ba) > 1) {
    analysis.faults.push_back(
        {"unbalanced-orders", std::to_string(ab) + " pairs ran AB and " + std::to_string(ba) +
                                  " BA: an effect of running first would pass for overhead"});
  }
}

void ask_for_more(const OverheadRequest& request, OverheadAnalysis& analysis) {
  const auto k = static_cast<std::uint32_t>(analysis.pairs.size());
  std::vector<double> d;
  for (const PairResult& pair : analysis.pairs) {
    if (!pair.log_ratio) return;
    d.push_back(*pair.log_ratio);
  }
  if (d.empty()) return;
  const double centre = mean(d).value();
  const double noise =
      d.size() < 3 ? std::max(kAssumedNoise, d.size() < 2 ? 0 : standard_deviation(d).value())
                   : standard_deviation(d).value();
  const std::uint32_t from = std::max(analysis.next_look.value_or(k + 1), k + 1);
  const auto total = pairs_to_decide(request.policy, centre, noise, analysis.alpha, from);
  if (total) analysis.further_pairs = *total - k;
}

/// The look that has exactly k pairs, and the next one after it.
void judge_at_look(const OverheadRequest& request, OverheadAnalysis& analysis) {
  const auto k = static_cast<std::uint32_t>(analysis.pairs.size());
  const Look* now = nullptr;
  for (const Look& look : request.looks) {
    if (look.pairs == k) now = &look;
    if (look.pairs > k && !analysis.next_look) analysis.next_look = look.pairs;
  }
  analysis.alpha = request.alpha;
  if (now != nullptr) {
    analysis.alpha = now->alpha;
  } else if (analysis.next_look) {
    for (const Look& look : request.looks) {
      if (look.pairs == *analysis.next_look) analysis.alpha = look.alpha;
    }
  }
  if (analysis.estimate) {
    analysis.bounds = Interval{analysis.estimate->lower_bound(analysis.alpha),
                               analysis.estimate->upper_bound(analysis.alpha)};
    for (const Goal& goal : request.policy.goals) {
      OverheadAnalysis::GoalResult result{goal, std::nullopt};
      if (now != nullptr && analysis.faults.empty()) {
        if (analysis.bounds->high < std::log(goal.below)) result.met = true;
        if (analysis.bounds->low > std::log(goal.below)) result.met = false;
      }
      analysis.goals.push_back(result);
    }
  }
  if (!analysis.faults.empty()) {
    for (const Fault& f : analysis.faults) analysis.reasons.push_back(f.code + ": " + f.message);
    return;
  }
  if (now == nullptr) {
    ask_for_more(request, analysis);
    std::string why = std::to_string(k) + (k == 1 ? " pair" : " pairs") + ": no verdict; ";
    why += analysis.next_look
               ? "the next registered look is at " + std::to_string(*analysis.next_look) + " pairs"
               : "no look is registered there";
    analysis.reasons.push_back(why);
    return;
  }
  if (!analysis.estimate) return;
  analysis.verdict = decide(request.policy, *analysis.bounds);
  const std::string low = overhead_text(analysis.bounds->low);
  const std::string high = overhead_text(analysis.bounds->high);
  const std::string pass = overhead_text(std::log(request.policy.pass_below));
  const std::string blocker = overhead_text(std::log(request.policy.fail_above));
  switch (analysis.verdict) {
    case OverheadVerdict::pass:
      analysis.reasons.push_back("the overhead is below " + pass + ": upper bound " + high);
      break;
    case OverheadVerdict::fail:
      analysis.reasons.push_back("the overhead is above " + blocker + ": lower bound " + low);
      break;
    case OverheadVerdict::needs_decision:
      analysis.reasons.push_back("the overhead is between " + pass + " and " + blocker +
                                 ": bounds " + low + " to " + high +
                                 "; a signed product decision is needed");
      break;
    case OverheadVerdict::inconclusive:
      ask_for_more(request, analysis);
      analysis.reasons.push_back(
          "the bounds " + low + " to " + high + " hold a line of the policy" +
          (analysis.further_pairs
               ? "; " + std::to_string(*analysis.further_pairs) + " further pairs would decide it"
               : "; the estimate sits on it, no affordable number of pairs would decide it"));
      break;
  }
}

}  // namespace

OverheadAnalysis analyse(const OverheadRequest& request) {
  OverheadAnalysis analysis;
  analysis.policy = request.policy;
  if (auto ok = check_looks(request.looks, request.alpha); !ok) {
    analysis.faults.push_back({"bad-looks", ok.error().message});
  }
  for (const LaunchPair& pair : request.pairs) {
    analysis.pairs.push_back(examine(pair, request, false));
  }
  for (const LaunchPair& pair : request.placebo) {
    analysis.placebo.push_back(examine(pair, request, true));
  }
  if (analysis.pairs.empty()) analysis.faults.push_back({"no-pairs", "no pair of runs was given"});
  for (const auto* list : {&analysis.pairs, &analysis.placebo}) {
    for (const PairResult& pair : *list) {
      analysis.faults.insert(analysis.faults.end(), pair.faults.begin(), pair.faults.end());
    }
  }
  cross_check(request, analysis);
  check_resolution(request, analysis);
  judge_placebo(request, analysis);
  check_balance(analysis);
  estimate(analysis);
  find_stragglers(analysis);
  judge_at_look(request, analysis);

  if (analysis.hodges_lehmann && analysis.estimate && analysis.bounds) {
    const double moved = *analysis.hodges_lehmann - analysis.estimate->value;
    const Interval other{analysis.bounds->low + moved, analysis.bounds->high + moved};
    if (analysis.faults.empty() && analysis.verdict != OverheadVerdict::inconclusive &&
        decide(request.policy, other) != analysis.verdict) {
      analysis.limits.push_back("with Hodges-Lehmann in place of the median the verdict would be " +
                                std::string(name_of(decide(request.policy, other))));
    }
  }
  if (analysis.stall_burden_deterministic > analysis.stall_burden_nondeterministic + 0.01) {
    analysis.limits.push_back("the deterministic arm lost " +
                              overhead_text(std::log1p(analysis.stall_burden_deterministic)) +
                              " of its time in stalls, the other " +
                              overhead_text(std::log1p(analysis.stall_burden_nondeterministic)) +
                              "; the verdict is about the typical step");
  }
  return analysis;
}

}  // namespace qualify::statistics
