#include <cmath>
#include <cstdio>

#include "qualify/statistics/distributions.hpp"
#include "qualify/statistics/overhead.hpp"

namespace qualify::statistics {

Result<DecisionPolicy> decision_policy(const std::string& name) {
  const std::vector<Goal> goals{{"production", 1.10}, {"stretch", 1.05}};
  if (name == "change-overhead") return DecisionPolicy{name, 1.01, 1.07, true, goals};
  if (name == "mode-overhead") return DecisionPolicy{name, 1.10, 1.10, false, goals};
  return fail(Errc::invalid_input, "unknown decision policy \"" + name + "\"", {},
              "the policies are change-overhead and mode-overhead");
}

const char* name_of(OverheadVerdict verdict) {
  switch (verdict) {
    case OverheadVerdict::pass:
      return "pass";
    case OverheadVerdict::fail:
      return "fail";
    case OverheadVerdict::needs_decision:
      return "needs-decision";
    case OverheadVerdict::inconclusive:
      return "inconclusive";
  }
  return "inconclusive";
}

OverheadVerdict decide(const DecisionPolicy& policy, const Interval& bounds) {
  const double pass = std::log(policy.pass_below);
  const double blocker = std::log(policy.fail_above);
  if (bounds.high < pass) return OverheadVerdict::pass;
  if (bounds.low > blocker) return OverheadVerdict::fail;
  if (policy.decision_between && bounds.low > pass && bounds.high < blocker) {
    return OverheadVerdict::needs_decision;
  }
  return OverheadVerdict::inconclusive;
}

std::optional<std::uint32_t> pairs_to_decide(const DecisionPolicy& policy, double mean,
                                             double deviation, double alpha, std::uint32_t from) {
  constexpr std::uint32_t most = 200;
  for (std::uint32_t k = from + from % 2; k <= most; k += 2) {
    if (k < 2) continue;
    const Estimate guess{mean, deviation / std::sqrt(k), static_cast<double>(k - 1)};
    const Interval bounds{guess.lower_bound(alpha), guess.upper_bound(alpha)};
    if (decide(policy, bounds) != OverheadVerdict::inconclusive) return k;
  }
  return std::nullopt;
}

std::string overhead_text(double log_ratio) {
  char text[32];
  const double percent = 100 * std::expm1(log_ratio);
  const int decimals = std::fabs(percent) < 1 ? 2 : 1;
  std::snprintf(text, sizeof text, "%.*f%%", decimals, percent);
  return text;
}

}  // namespace qualify::statistics
