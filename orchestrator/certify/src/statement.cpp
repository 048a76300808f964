#include "qualify/certify/statement.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace qualify::certify {

namespace {

constexpr const char* kStatementType = "https://in-toto.io/Statement/v1";
constexpr int kSchemaVersion = 1;

Json resource(const std::string& name, const Digest& digest) {
  return {{"name", name}, {"digest", {{"sha256", digest.hex()}}}};
}

const RunCitation* cited(const GateResult& result, const std::string& run) {
  const auto found = std::find_if(result.runs.begin(), result.runs.end(),
                                  [&](const RunCitation& each) { return each.run == run; });
  return found == result.runs.end() ? nullptr : &*found;
}

Result<void> must_be_certifiable(const GateResult& result) {
  const std::string where = "gate " + result.gate.name;
  const auto& judgement = result.judgement;
  if (judgement.verdict != policy::Verdict::pass) {
    return fail(Errc::refused,
                std::string("no certificate for the verdict ") + name_of(judgement.verdict), where,
                "only a pass is certified");
  }
  if (result.bundle_dirty) {
    return fail(
        Errc::refused,
        "no certificate for a dirty bundle (sealed with --allow-dirty): nobody can say what "
        "it holds",
        where, "commit the changes, seal again, and run the gate on that bundle");
  }
  if (!policy::suffices(result.recipe, result.gate.recipe)) {
    return fail(Errc::refused,
                std::string("no certificate for a ") + name_of(result.recipe) +
                    " recipe: the gate asks for " + name_of(result.gate.recipe),
                where, "run the gate on a bundle of that class");
  }
  if (result.runs.empty()) return fail(Errc::invalid_input, "a pass without runs", where);
  for (const RunCitation& run : result.runs) {
    if (run.evidence == Digest()) {
      return fail(Errc::invalid_input, "run " + run.run + " has no evidence", where);
    }
  }
  if (result.gate.kind != policy::GateKind::performance && !judgement.level) {
    return fail(Errc::invalid_input, "a pass of equal runs without a strength level", where);
  }
  if (judgement.level && *judgement.level < result.gate.level) {
    return fail(Errc::invalid_input,
                std::string("a pass at ") + name_of(*judgement.level) + ", the gate asks for " +
                    name_of(result.gate.level),
                where);
  }
  if (result.gate.kind == policy::GateKind::baseline && !result.baseline) {
    return fail(Errc::invalid_input, "a pass against no baseline", where);
  }
  for (const policy::PairJudgement& pair : judgement.pairs) {
    for (const std::string& run : {pair.run_a, pair.run_b}) {
      if (result.baseline && run == policy::kBaselineRun) continue;
      if (cited(result, run) == nullptr) {
        return fail(Errc::invalid_input, "the judgement rests on run " + run + ", not cited",
                    where);
      }
    }
  }
  return {};
}

Json runs_json(const std::vector<RunCitation>& runs) {
  Json list = Json::array();
  for (const RunCitation& run : runs) {
    list.push_back({{"run", run.run},
                    {"arm", run.arm},
                    {"attempt", run.attempt},
                    {"evidence", run.evidence.str()},
                    {"job", run.job_id},
                    {"nodes", run.nodes}});
  }
  return list;
}

Json pairs_json(const std::vector<policy::PairJudgement>& pairs) {
  Json list = Json::array();
  for (const policy::PairJudgement& pair : pairs) {
    Json each = {{"run_a", pair.run_a}, {"run_b", pair.run_b}};
    if (pair.step_time_ratio) each["step_time_ratio"] = *pair.step_time_ratio;
    if (pair.comparison) {
      Json metrics = Json::array();
      for (const auto& metric : pair.comparison->metrics) metrics.push_back(metric.metric);
      each["metrics"] = std::move(metrics);
    }
    list.push_back(std::move(each));
  }
  return list;
}

/// The number that is signed: estimate, interval and bounds as ratios of step times, and the checks
/// beside it. The windows stay with the judgement.
Json overhead_json(const policy::Judgement& judgement) {
  if (!judgement.overhead) return nullptr;
  const Json all = statistics::to_json(*judgement.overhead);
  Json brief = Json::object();
  for (const char* key :
       {"ratio", "interval_95", "one_sided_bounds", "one_sided_alpha", "estimator", "period_ratio",
        "placebo_ratio", "sign_flip_p", "goals", "stall_burden"}) {
    brief[key] = all.at(key);
  }
  return brief;
}

/// What the test-result predicate calls tests: the pairs that were compared.
struct Tests {
  Json passed = Json::array();
  Json warned = Json::array();
};

Tests tests_of(const GateResult& result) {
  Tests tests;
  for (const policy::PairJudgement& pair : result.judgement.pairs) {
    const RunCitation* a = cited(result, pair.run_a);
    const RunCitation* b = cited(result, pair.run_b);
    // Performance pairs share an allocation on purpose; for equality it is weaker evidence.
    const bool weaker = result.gate.kind != policy::GateKind::performance && a != nullptr &&
                        b != nullptr && a->job_id == b->job_id;
    (weaker ? tests.warned : tests.passed)
        .push_back(result.gate.name + ": " + pair.run_a + " and " + pair.run_b);
  }
  if (result.judgement.pairs.empty()) tests.passed.push_back(result.gate.name);
  return tests;
}

}  // namespace

Result<Json> gate_statement(const GateResult& result) {
  if (auto fit = must_be_certifiable(result); !fit) return tl::unexpected(fit.error());
  const policy::Judgement& judgement = result.judgement;
  Tests tests = tests_of(result);

  Json configuration = Json::array();
  configuration.push_back(resource("policy", policy_digest(result.gate)));
  configuration.push_back(resource("plan", result.plan_digest));
  for (const RunCitation& run : result.runs) {
    configuration.push_back(resource("evidence/" + run.run, run.evidence));
  }
  if (result.baseline) {
    configuration.push_back(
        resource("baseline/" + result.baseline->name, result.baseline->evidence));
  }

  Json own = {
      {"schema_version", kSchemaVersion},
      {"gate", result.gate.name},
      {"policy", {{"digest", policy_digest(result.gate).str()}, {"gate", to_json(result.gate)}}},
      {"plan", result.plan_digest.str()},
      {"qualification", result.qualification},
      {"verdict", name_of(judgement.verdict)},
      {"reasons", judgement.reasons},
      {"level", judgement.level ? Json(name_of(*judgement.level)) : Json(nullptr)},
      {"claim", judgement.level ? Json(claim_of(*judgement.level)) : Json(nullptr)},
      {"limits", judgement.limits},
      {"scope", {{"recipe", name_of(result.recipe)}, {"topology", to_json(result.topology)}}},
      {"scheduler", result.scheduler},
      {"evidence", runs_json(result.runs)},
      {"overhead", overhead_json(judgement)},
      {"pairs", pairs_json(judgement.pairs)}};
  if (result.baseline) own["baseline"] = to_json(*result.baseline);

  const bool warned = !tests.warned.empty();
  return Json{{"_type", kStatementType},
              {"subject", Json::array({resource(result.bundle_name, result.bundle_digest)})},
              {"predicateType", kTestResultPredicate},
              {"predicate",
               {{"result", warned ? "WARNED" : "PASSED"},
                {"configuration", std::move(configuration)},
                {"passedTests", std::move(tests.passed)},
                {"warnedTests", std::move(tests.warned)},
                {"failedTests", Json::array()},
                {"qualify", std::move(own)}}}};
}

namespace {

/// Throws on what no engine writes.
void read_parts(const Json& parts, Certified& to) {
  for (const Json& part : parts) {
    const Json& id = part.at("certificate");
    to.parts.push_back({part.at("name").get<std::string>(), part.at("gate").get<std::string>(),
                        id.is_null() ? std::string() : id.get<std::string>(),
                        part.at("decisions").get<std::vector<std::string>>()});
  }
  if (to.parts.empty()) throw std::invalid_argument("it cites no parts");
}

}  // namespace

Result<Certified> read_certified(const Json& predicate) {
  try {
    const Json& own = predicate.at("qualify");
    Certified certified;
    certified.verdict = own.at("verdict").get<std::string>();
    if (const Json& level = own.at("level"); !level.is_null()) {
      certified.level = level.get<std::string>();
    }
    const Json& policy = own.at("policy");
    certified.policy = Digest::parse(policy.at("digest").get<std::string>()).value();
    if (own.contains("parts")) {
      read_parts(own["parts"], certified);
      auto gate = policy::gate_from_json(policy.at("gate"));
      if (!gate) return tl::unexpected(gate.error());
      if (policy_digest(*gate) != certified.policy) {
        return fail(Errc::integrity, "the certificate's gate is not the one of its policy digest");
      }
      certified.composite = std::move(*gate);
      return certified;
    }
    certified.qualification = own.at("qualification").get<std::string>();
    certified.plan = Digest::parse(own.at("plan").get<std::string>()).value();
    for (const Json& run : own.at("evidence")) {
      certified.runs.push_back({run.at("run").get<std::string>(),
                                Digest::parse(run.at("evidence").get<std::string>()).value()});
    }
    if (certified.runs.empty()) return fail(Errc::integrity, "the certificate cites no evidence");
    return certified;
  } catch (const std::exception& error) {
    return fail(Errc::integrity, std::string("not a certificate of a gate: ") + error.what());
  }
}

}  // namespace qualify::certify
