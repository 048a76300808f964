#include <nlohmann/json.hpp>

#include "gate_reading.hpp"

namespace qualify::policy {

namespace {

std::int64_t whole_seconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

void write_kind(const Gate& gate, Json& json) {
  switch (gate.kind) {
    case GateKind::repeatability:
      return write_repeatability(gate, json);
    case GateKind::baseline:
      return write_baseline(gate, json);
    case GateKind::restart:
      return write_restart(gate, json);
    case GateKind::scale:
      return write_scale(gate, json);
    case GateKind::localization:
      return write_localization(gate, json);
    case GateKind::coverage:
      return write_coverage(gate, json);
    case GateKind::performance:
      return write_performance(gate, json);
    case GateKind::enablement:
      return write_enablement(gate, json);
  }
}

/// As a person would write it: "40m" where the record says "…_seconds": 2400.
void as_written(Json& entry, const std::string& key) {
  if (!entry.contains(key + "_seconds")) return;
  entry[key] = entry[key + "_seconds"].dump() + "s";
  entry.erase(key + "_seconds");
}

/// What stands for "nothing declared" is left out again, as the reader wants it.
void drop_defaults(Json& timing) {
  if (timing.contains("exclude") && timing["exclude"].is_object()) {
    for (const char* key : {"evaluation", "checkpoint"}) {
      if (timing["exclude"].contains(key) && timing["exclude"][key].is_null()) {
        timing["exclude"].erase(key);
      }
    }
  }
  if (timing.contains("looks") && timing["looks"].is_array() && timing["looks"].size() == 1 &&
      timing["looks"][0].value("alpha", 0.0) == kAlpha) {
    timing.erase("looks");  // the one that stands for none declared
  }
}

}  // namespace

Json to_json(const Gate& gate) {
  Json json = {{"schema_version", 1}, {"name", gate.name}, {"kind", name_of(gate.kind)}};
  if (!is_composite(gate.kind)) json["run_limit_seconds"] = whole_seconds(gate.run_limit);
  // What was not there from the beginning is left out where it is not used: older digests hold.
  if (gate.heartbeat != Duration::zero()) {
    json["heartbeat_seconds"] = whole_seconds(gate.heartbeat);
  }
  if (gate.recipe != spec::RecipeClass::debug ||
      default_recipe(gate.kind) != spec::RecipeClass::debug) {
    json["recipe"] = spec::name_of(gate.recipe);
  }
  if (gate.max_age != Duration::zero()) json["max_age_seconds"] = whole_seconds(gate.max_age);
  write_kind(gate, json);
  return json;
}

Digest policy_digest(const Gate& gate) {
  return digest_of(to_json(gate));
}

Result<Gate> gate_from_json(const Json& json) {
  const auto damaged = [](const std::string& what) {
    return fail(Errc::integrity, "a recorded gate is not well-formed: " + what);
  };
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string()) {
    return damaged("no name");
  }
  // Written as a person would write it, and read by the same reader. YAML takes JSON as it is.
  Json entry = json;
  entry.erase("name");
  entry.erase("schema_version");
  for (const char* key : {"run_limit", "heartbeat", "max_age"}) as_written(entry, key);
  if (entry.contains("steps") && entry["steps"] == 0) entry.erase("steps");
  drop_defaults(entry);
  if (entry.contains("overhead") && entry["overhead"].is_object()) drop_defaults(entry["overhead"]);
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
