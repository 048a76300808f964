#include <nlohmann/json.hpp>

#include "gate_reading.hpp"

namespace qualify::policy {

namespace {

Json recurring_json(const statistics::Recurring& event) {
  if (event.every == 0) return nullptr;
  return {{"every", event.every}, {"after", event.after}};
}

Json exclusions_json(const statistics::ExclusionCalendar& calendar) {
  Json profiler = Json::array();
  for (const auto& range : calendar.profiler) {
    profiler.push_back({{"first", range.first}, {"last", range.last}});
  }
  return {{"init_steps", calendar.init_steps},
          {"first_iterations", calendar.first_iterations},
          {"warmup_steps", calendar.warmup_steps},
          {"evaluation", recurring_json(calendar.evaluation)},
          {"checkpoint", recurring_json(calendar.checkpoint)},
          {"profiler", std::move(profiler)},
          {"restarts", calendar.restarts}};
}

Json looks_json(const Gate& gate) {
  Json looks = Json::array();
  for (const statistics::Look& look : registered_looks(gate)) {
    looks.push_back({{"pairs", look.pairs}, {"alpha", look.alpha}});
  }
  return looks;
}

}  // namespace

Json to_json(const Gate& gate) {
  Json json = {
      {"schema_version", 1},
      {"name", gate.name},
      {"kind", name_of(gate.kind)},
      {"run_limit_seconds",
       std::chrono::duration_cast<std::chrono::seconds>(gate.run_limit).count()},
  };
  // What was not there from the beginning is left out where it is not used: older digests hold.
  if (gate.heartbeat != Duration::zero()) {
    json["heartbeat_seconds"] =
        std::chrono::duration_cast<std::chrono::seconds>(gate.heartbeat).count();
  }
  switch (gate.kind) {
    case GateKind::repeatability:
      json["arm"] = gate.arm;
      json["runs"] = gate.runs;
      json["level"] = exactness::name_of(gate.level);
      json["allocation"] = kAllocationNames[static_cast<std::size_t>(gate.allocation)];
      if (gate.nodes != NodeChoice::any) {
        json["nodes"] = kNodeChoiceNames[static_cast<std::size_t>(gate.nodes)];
      }
      json["metrics"] = gate.required_metrics;
      json["steps"] = gate.steps;
      break;
    case GateKind::restart:
      json["arms"] = {
          {"uninterrupted", gate.arm}, {"resumed", gate.resumed_arm}, {"broken", gate.broken_arm}};
      json["from_iteration"] = gate.from_iteration;
      json["level"] = exactness::name_of(gate.level);
      json["metrics"] = gate.required_metrics;
      json["steps"] = gate.steps;
      break;
    case GateKind::performance:
      json["arms"] = {{"deterministic", gate.deterministic_arm},
                      {"nondeterministic", gate.nondeterministic_arm}};
      json["pairs"] = gate.pairs;
      json["metric"] = gate.metric;
      json["decision"] = gate.decision;
      json["placebo_pairs"] = gate.placebo_pairs;
      json["looks"] = looks_json(gate);
      json["exclude"] = exclusions_json(gate.exclude);
      break;
  }
  return json;
}

Digest policy_digest(const Gate& gate) {
  return digest_of(to_json(gate));
}

Result<Gate> gate_from_json(const Json& json) {
  const auto damaged = [](const std::string& what) {
    return fail(Errc::integrity, "a recorded gate is not well-formed: " + what);
  };
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string() ||
      !json.contains("run_limit_seconds")) {
    return damaged("no name or limit");
  }
  // Written as a person would write it, and read by the same reader. YAML takes JSON as it is.
  Json entry = json;
  entry.erase("name");
  entry.erase("schema_version");
  entry["run_limit"] = json["run_limit_seconds"].dump() + "s";
  entry.erase("run_limit_seconds");
  if (json.contains("heartbeat_seconds")) {
    entry["heartbeat"] = json["heartbeat_seconds"].dump() + "s";
    entry.erase("heartbeat_seconds");
  }
  if (entry.contains("exclude") && entry["exclude"].is_object()) {
    for (const char* key : {"evaluation", "checkpoint"}) {
      if (entry["exclude"].contains(key) && entry["exclude"][key].is_null()) {
        entry["exclude"].erase(key);
      }
    }
  }
  if (entry.contains("steps") && entry["steps"] == 0) entry.erase("steps");
  if (entry.contains("looks") && entry["looks"].is_array() && entry["looks"].size() == 1 &&
      entry["looks"][0].value("alpha", 0.0) == kAlpha) {
    entry.erase("looks");  // the one that stands for none declared
  }
  const Json document = {{"schema_version", 1},
                         {"gates", {{json["name"].get<std::string>(), std::move(entry)}}}};
  const auto root = spec::parse_yaml(document.dump(), "recorded gate");
  if (!root) return damaged(root.error().message);
  auto read = read_gates(*root, "recorded gate");
  if (!read) return damaged(read.error().message);
  Gate gate = std::move(read->gates.front());
  if (to_json(gate) != json) return damaged("it does not come back as it was recorded");
  return gate;
}

}  // namespace qualify::policy
