#include "narrowing.hpp"

#include "conduct.hpp"
#include "qualify/run/run_traces.hpp"

namespace qualify::cli {

namespace {

/// Names of gates have 64 characters at most.
constexpr std::size_t kLongestGate = 64;

/// The gate of one level: the arms of both runs again, on their nodes, with no criterion but the
/// plan. What is a capture already is one of the same gate.
policy::Gate capture_gate(const policy::Gate& of, const run::RunState& a, const run::RunState& b,
                          const traces::CapturePlan& plan) {
  static constexpr std::string_view kSuffix = ".capture";
  const auto& earlier = of.localization.capture;
  const std::string base = earlier ? earlier->of : of.name;
  policy::Gate gate;
  gate.kind = policy::GateKind::localization;
  gate.name = base.substr(0, kLongestGate - kSuffix.size()) + std::string(kSuffix);
  gate.run_limit = of.run_limit;
  gate.heartbeat = of.heartbeat;
  gate.recipe = of.recipe;
  gate.localization.capture = policy::Capture{
      base, a.run.arm, b.run.arm, plan, a.attempts.back().nodes, b.attempts.back().nodes};
  return gate;
}

Result<traces::Localization> localize(const Session& session, const run::State& state,
                                      const NamedRun& a, const NamedRun& b,
                                      const traces::LocalizeOptions& options) {
  const auto of_a = run::RunTraces::open(state.evidence, a.evidence, scratch_folder(session));
  if (!of_a) return tl::unexpected(of_a.error());
  const auto of_b = run::RunTraces::open(state.evidence, b.evidence, scratch_folder(session));
  if (!of_b) return tl::unexpected(of_b.error());
  return run::localize(*of_a, *of_b, options);
}

std::string name_of(const NamedRun& run) {
  return run.qualification.name + "/" + run.run;
}

}  // namespace

Result<std::vector<Level>> narrow(Session& session, run::State& state, const NamedRun& a,
                                  const NamedRun& b, const traces::LocalizeOptions& options,
                                  const std::function<void(const Level&)>& each) {
  const plan::Plan& plan = a.qualification.plan;
  if (plan.bundle != b.qualification.plan.bundle) {
    return fail(Errc::refused, "the runs are of two bundles, and can't be run again side by side",
                name_of(a) + ", " + name_of(b), "localize without --run compares what there is");
  }
  auto found = localize(session, state, a, b, options);
  if (!found) return tl::unexpected(found.error());
  std::vector<Level> levels;
  levels.push_back({{}, name_of(a), name_of(b), std::move(*found)});
  each(levels.back());
  const std::string reservation = plan.scheduler == "local" ? std::string() : plan.reservation;
  while (levels.back().found.outcome == traces::Outcome::differs &&
         levels.back().found.capture_plan) {
    const traces::CapturePlan& next = *levels.back().found.capture_plan;
    const bool finer =
        levels.size() < 2 || next.level > levels[levels.size() - 2].found.capture_plan->level;
    if (!finer) break;  // it parted elsewhere this time, and was recorded as finely as it goes
    const auto gate = capture_gate(a.qualification.gate, a.state(), b.state(), next);
    const auto outcome = run_to_verdict(session, state, gate, plan.bundle, reservation);
    if (!outcome) return tl::unexpected(outcome.error());
    const std::string& name = outcome->state.name;
    if (outcome->judgement.traces.empty()) {
      return fail(Errc::invalid_input, outcome->judgement.reasons.front(), name,
                  "see: qualify status " + gate.name);
    }
    levels.push_back({name, name + "/a", name + "/b", outcome->judgement.traces.front().found});
    each(levels.back());
  }
  return levels;
}

}  // namespace qualify::cli
