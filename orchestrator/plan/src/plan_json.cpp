#include <nlohmann/json.hpp>

#include "qualify/plan/plan.hpp"

namespace qualify::plan {

namespace {

/// Throws on what no plan says.
Baseline baseline_from_json(const Json& json) {
  return {json.at("name").get<std::string>(),
          json.at("record").get<std::string>(),
          json.at("certificate").get<std::string>(),
          Digest::parse(json.at("bundle").get<std::string>()).value(),
          json.at("run").get<std::string>(),
          Digest::parse(json.at("evidence").get<std::string>()).value()};
}

}  // namespace

Json to_json(const Baseline& baseline) {
  return {{"name", baseline.name},
          {"record", baseline.record},
          {"certificate", baseline.certificate},
          {"bundle", baseline.bundle.str()},
          {"run", baseline.run},
          {"evidence", baseline.evidence.str()}};
}

Json to_json(const Plan& plan) {
  // What a plan does not use is left out, so that plans recorded before it was known stay the same.
  Json runs = Json::array();
  for (const Run& run : plan.runs) {
    Json entry = {{"id", run.id},
                  {"arm", run.arm},
                  {"pair", run.pair == 0 ? Json(nullptr) : Json(run.pair)},
                  {"seed", std::to_string(run.seed)}};
    if (run.allocation != 0) entry["allocation"] = run.allocation;
    if (!run.nodes.empty()) entry["nodes"] = run.nodes;
    if (!run.same_nodes_as.empty()) entry["same_nodes_as"] = run.same_nodes_as;
    if (!run.other_nodes_than.empty()) entry["other_nodes_than"] = run.other_nodes_than;
    if (!run.resumes.empty()) entry["resumes"] = run.resumes;
    runs.push_back(std::move(entry));
  }
  Json json = {{"schema_version", 1},
               {"gate", plan.gate},
               {"kind", policy::name_of(plan.kind)},
               {"bundle", plan.bundle.str()},
               {"policy", plan.policy.str()},
               {"scheduler", plan.scheduler},
               {"reservation", plan.reservation},
               {"reservation_fingerprint", plan.reservation_fingerprint.str()},
               {"topology", to_json(plan.topology)},
               {"tasks_per_node", plan.tasks_per_node},
               {"run_limit_seconds",
                std::chrono::duration_cast<std::chrono::seconds>(plan.run_limit).count()},
               {"runs", std::move(runs)}};
  if (!plan.checkpoint.empty()) {
    json["checkpoint"] = plan.checkpoint;
    json["from_iteration"] = plan.from_iteration;
  }
  if (plan.baseline) json["baseline"] = to_json(*plan.baseline);
  return json;
}

Result<Plan> plan_from_json(const Json& json) {
  const auto damaged = [](const std::string& what) {
    return fail(Errc::integrity, "a recorded plan is not well-formed: " + what);
  };
  try {
    Plan plan;
    plan.gate = json.at("gate").get<std::string>();
    plan.kind = policy::parse_gate_kind(json.at("kind").get<std::string>()).value();
    plan.bundle = Digest::parse(json.at("bundle").get<std::string>()).value();
    plan.policy = Digest::parse(json.at("policy").get<std::string>()).value();
    plan.scheduler = json.at("scheduler").get<std::string>();
    plan.reservation = json.at("reservation").get<std::string>();
    plan.reservation_fingerprint =
        Digest::parse(json.at("reservation_fingerprint").get<std::string>()).value();
    plan.topology = spec::topology_from_json(json.at("topology")).value();
    plan.tasks_per_node = json.at("tasks_per_node").get<std::uint32_t>();
    plan.run_limit = std::chrono::seconds(json.at("run_limit_seconds").get<std::int64_t>());
    for (const Json& entry : json.at("runs")) {
      Run run;
      run.id = entry.at("id").get<std::string>();
      run.arm = entry.at("arm").get<std::string>();
      if (!entry.at("pair").is_null()) run.pair = entry.at("pair").get<std::uint32_t>();
      run.seed = std::stoll(entry.at("seed").get<std::string>());
      run.allocation = entry.value("allocation", 0U);
      run.nodes = entry.value("nodes", std::vector<std::string>());
      run.same_nodes_as = entry.value("same_nodes_as", "");
      run.other_nodes_than = entry.value("other_nodes_than", "");
      run.resumes = entry.value("resumes", "");
      plan.runs.push_back(std::move(run));
    }
    plan.checkpoint = json.value("checkpoint", "");
    plan.from_iteration = json.value("from_iteration", std::int64_t{0});
    if (json.contains("baseline")) plan.baseline = baseline_from_json(json["baseline"]);
    return plan;
  } catch (const std::exception& error) {
    return damaged(error.what());
  }
}

}  // namespace qualify::plan
