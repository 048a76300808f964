#include "qualify/policy/judge.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "equality.hpp"
#include "localization.hpp"
#include "performance.hpp"

namespace qualify::policy {

namespace {

constexpr std::array kVerdicts = {"pass", "fail", "inconclusive", "needs-decision", "blocked"};

}  // namespace

const char* name_of(Verdict verdict) {
  return kVerdicts[static_cast<std::size_t>(verdict)];
}

Result<Verdict> parse_verdict(const std::string& text) {
  for (std::size_t i = 0; i < kVerdicts.size(); ++i) {
    if (text == kVerdicts[i]) return static_cast<Verdict>(i);
  }
  return fail(Errc::invalid_input, "not a verdict: '" + text + "'");
}

Exit exit_for(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return Exit::ok;
    case Verdict::fail:
      return Exit::differs;
    case Verdict::inconclusive:
    case Verdict::needs_decision:
    case Verdict::blocked:
      return Exit::undecided;
  }
  return Exit::undecided;
}

Judgement judge(const Gate& gate, const std::vector<RunEvidence>& runs,
                const RunEvidence* baseline) {
  switch (gate.kind) {
    case GateKind::repeatability:
      return judge_repeatability(gate, runs);
    case GateKind::baseline:
      return judge_baseline(gate, runs, baseline);
    case GateKind::restart:
      return judge_restart(gate, runs);
    case GateKind::scale:
      return judge_scale(gate, runs);
    case GateKind::localization:
      return judge_localization(gate, runs);
    case GateKind::performance:
      return judge_performance(gate, runs);
    case GateKind::coverage:
    case GateKind::enablement:
      break;
  }
  Judgement none;
  none.reasons.push_back(std::string("a gate of kind ") + name_of(gate.kind) +
                         " has no runs: it rests on other gates");
  return none;
}

bool wants_more(const Judgement& judgement) {
  return judgement.verdict == Verdict::inconclusive && judgement.overhead &&
         judgement.overhead->faults.empty() && judgement.overhead->next_look;
}

Json to_json(const Judgement& judgement) {
  Json json = {{"schema_version", 1},
               {"verdict", name_of(judgement.verdict)},
               {"reasons", judgement.reasons},
               {"limits", judgement.limits},
               {"level", nullptr},
               {"overhead", nullptr},
               {"pairs", Json::array()}};
  if (judgement.level) json["level"] = exactness::name_of(*judgement.level);
  if (judgement.overhead) json["overhead"] = statistics::to_json(*judgement.overhead);
  for (const PairJudgement& pair : judgement.pairs) {
    json["pairs"].push_back(
        {{"run_a", pair.run_a},
         {"run_b", pair.run_b},
         {"comparison", pair.comparison ? exactness::to_json(*pair.comparison) : Json(nullptr)},
         {"environment", pair.environment ? exactness::to_json(*pair.environment) : Json(nullptr)},
         {"step_time_ratio", pair.step_time_ratio ? Json(*pair.step_time_ratio) : Json(nullptr)}});
  }
  // Other kinds' judgements were recorded before there were any.
  for (const TraceJudgement& each : judgement.traces) {
    json["traces"].push_back({{"run_a", each.run_a},
                              {"run_b", each.run_b},
                              {"localization", traces::to_json(each.found)}});
  }
  return json;
}

}  // namespace qualify::policy
