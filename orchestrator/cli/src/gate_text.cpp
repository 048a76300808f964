#include "gate_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "qualify/traces/manifest.hpp"

namespace qualify::cli {

namespace {

using policy::Gate;
using policy::GateKind;

std::string steps_text(const Gate& gate, std::int64_t first = 1) {
  return gate.steps == 0 ? "at every iteration that is there"
                         : fmt::format("at each of iterations {} to {}", first, gate.steps);
}

std::string metrics_text(const Gate& gate) {
  return fmt::format("{}, {}, at {} or stronger ({})", fmt::join(gate.required_metrics, ", "),
                     steps_text(gate, gate.from_iteration + 1), exactness::name_of(gate.level),
                     exactness::claim_of(gate.level));
}

std::string places_text(const Gate& gate) {
  if (gate.allocation == policy::Allocation::same) {
    return "All runs in one job, one after the other: weaker than separate ones, and said so.";
  }
  switch (gate.nodes) {
    case policy::NodeChoice::same:
      return "Every run in a job of its own, on the nodes of the first.";
    case policy::NodeChoice::disjoint:
      return "Every run in a job of its own, on none of the first one's nodes.";
    case policy::NodeChoice::any:
      break;
  }
  return "Every run in a job of its own.";
}

std::string repeats_text(const Gate& gate) {
  return fmt::format("{} run{} of arm {}, each at most {}", gate.runs, gate.runs == 1 ? "" : "s",
                     gate.arm, format_duration(gate.run_limit));
}

GateText repeatability(const Gate& gate) {
  return {{"Equal in every run: " + metrics_text(gate) + ".", places_text(gate)},
          repeats_text(gate),
          "all runs are equal bit for bit to the first"};
}

GateText baseline(const Gate& gate) {
  GateText text = repeatability(gate);
  text.asks.push_back("Equal, too, to baseline " + gate.baseline +
                      ", as it stands when the plan is made.");
  text.closes = "the runs equal the baseline; repeatable but different fails as 'changes baseline'";
  return text;
}

GateText scale(const Gate& gate) {
  GateText text = repeatability(gate);
  text.asks.insert(text.asks.begin(), "Exactly " + gate.scale.str() + ", counted from evidence.");
  text.closes = "all runs at exactly that topology are equal; a smaller pass is no proof";
  return text;
}

GateText restart(const Gate& gate) {
  return {
      {fmt::format("Arm {} resumes from iteration {} of arm {}, and is equal from there on: {}.",
                   gate.resumed_arm, gate.from_iteration, gate.arm, metrics_text(gate)),
       fmt::format("Arm {} resumes wrongly on purpose, and must differ.", gate.broken_arm)},
      fmt::format("3 runs: arms {}, {}, {}, each at most {}", gate.arm, gate.resumed_arm,
                  gate.broken_arm, format_duration(gate.run_limit)),
      "the resumed run equals the uninterrupted one, and the broken one does not"};
}

GateText performance(const Gate& gate) {
  const auto looks = policy::registered_looks(gate);
  GateText text;
  text.asks.push_back(fmt::format("{} of arm {} against arm {}, in pairs on the same nodes.",
                                  gate.metric, gate.deterministic_arm, gate.nondeterministic_arm));
  std::string at;
  for (const auto& look : looks) {
    at += fmt::format("{}{} pairs (error {:g})", at.empty() ? "" : ", ", look.pairs, look.alpha);
  }
  text.asks.push_back("Decided by policy " + gate.decision + " at " + at + ".");
  text.runs = fmt::format("{} runs: {} pairs and {} placebo pair{}, each run at most {}",
                          run_count(gate), gate.pairs, gate.placebo_pairs,
                          gate.placebo_pairs == 1 ? "" : "s", format_duration(gate.run_limit));
  text.closes = "the upper bound of the overhead is below the policy's limit";
  return text;
}

GateText localization(const Gate& gate) {
  const policy::LocalizationCriteria& own = gate.localization;
  GateText text;
  text.runs =
      fmt::format("{} runs, each at most {}", run_count(gate), format_duration(gate.run_limit));
  if (own.capture) {
    text.asks.push_back(fmt::format("Where arms {} and {} part, recorded at {}, for gate {}.",
                                    own.capture->arm_a, own.capture->arm_b,
                                    traces::name_of(own.capture->plan.level), own.capture->of));
    text.closes = "nothing: it is a diagnosis";
    return text;
  }
  for (const policy::Plant& plant : own.planted) {
    text.asks.push_back(
        fmt::format("What arm {} plants is found in iteration {}, {}, {}, on ranks {}, as {}, and "
                    "nothing else.",
                    plant.arm, plant.iteration, plant.phase, plant.site,
                    traces::ranks_text(plant.ranks), plant.classification));
  }
  text.asks.push_back(fmt::format("Runs of arm {} have whole traces of {} ranks, all equal.",
                                  own.traced_arm, own.ranks));
  text.asks.push_back(
      fmt::format("Without traces, arm {} has the same {}.", own.untraced_arm, metrics_text(gate)));
  text.asks.push_back(fmt::format("Tracing costs less than {:.4g}% of {}, in {} pairs.",
                                  100 * (own.overhead_below - 1), gate.metric, gate.pairs));
  text.closes = "every planted divergence is found, and tracing changes no bit and costs little";
  return text;
}

GateText coverage(const Gate& gate) {
  GateText text;
  for (const auto& row : gate.coverage) {
    text.asks.push_back(fmt::format("{}: correctness by gate {}, performance by gate {}.",
                                    row.model, row.correctness, row.performance));
  }
  text.runs = "none of its own";
  text.closes = fmt::format("each of the {} cells has a passing certificate, none older than {}",
                            2 * gate.coverage.size(), format_duration(gate.max_age));
  return text;
}

GateText enablement(const Gate& gate) {
  GateText text;
  for (const auto& blocker : gate.blockers) {
    std::string what = blocker.description.empty() ? "" : ": " + blocker.description;
    if (!what.ends_with('.')) what += '.';
    text.asks.push_back(fmt::format("{}: closed by gate {}{}", blocker.name, blocker.gate, what));
  }
  text.asks.push_back("The production recipe, by gate " + gate.production + ".");
  text.runs = "none of its own";
  text.closes = "every blocker is closed by its own gate, and the production recipe has passed";
  return text;
}

GateText of_kind(const Gate& gate) {
  switch (gate.kind) {
    case GateKind::repeatability:
      return repeatability(gate);
    case GateKind::baseline:
      return baseline(gate);
    case GateKind::restart:
      return restart(gate);
    case GateKind::scale:
      return scale(gate);
    case GateKind::localization:
      return localization(gate);
    case GateKind::coverage:
      return coverage(gate);
    case GateKind::performance:
      return performance(gate);
    case GateKind::enablement:
      return enablement(gate);
  }
  return {};
}

}  // namespace

GateText describe(const Gate& gate) {
  GateText text = of_kind(gate);
  if (!policy::is_composite(gate.kind)) {
    text.asks.push_back(
        gate.recipe == spec::RecipeClass::debug
            ? "A bundle of any recipe class."
            : std::string("A bundle whose recipe is ") + spec::name_of(gate.recipe) +
                  (gate.recipe == spec::RecipeClass::proxy ? ", or production." : "."));
  }
  if (gate.max_age != Duration::zero() && gate.kind != GateKind::coverage) {
    text.asks.push_back("A certificate older than " + format_duration(gate.max_age) + " is stale.");
  }
  return text;
}

std::size_t run_count(const Gate& gate) {
  switch (gate.kind) {
    case GateKind::repeatability:
    case GateKind::baseline:
    case GateKind::scale:
      return gate.runs;
    case GateKind::restart:
      return 3;
    case GateKind::performance:
      return 2UL * (gate.pairs + gate.placebo_pairs);
    case GateKind::localization:
      if (gate.localization.capture) return 2;
      return gate.localization.planted.size() + 2UL * (gate.pairs + gate.placebo_pairs);
    case GateKind::coverage:
    case GateKind::enablement:
      break;
  }
  return 0;
}

}  // namespace qualify::cli
