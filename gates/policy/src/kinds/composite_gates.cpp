#include <nlohmann/json.hpp>

#include "../gate_reading.hpp"

/// Kinds that have no runs of their own: they rest on what other gates of the file came to.
namespace qualify::policy {

void read_coverage(spec::Fields& fields, Gate& gate) {
  if (!fields.has("max_age")) {
    fields.fault(fields.mark(), "gate '" + gate.name + "' needs 'max_age'",
                 "how old a cell's certificate may be, such as 8d");
  }
  fields.each_named("models", "model", [&](const std::string& model, spec::Fields& cells) {
    CoverageRow row;
    row.model = model;
    row.correctness = cells.required_text("correctness");
    row.performance = cells.required_text("performance");
    gate.coverage.push_back(std::move(row));
  });
  if (gate.coverage.empty()) {
    fields.fault(fields.mark("models"), "gate '" + gate.name + "' needs 'models'",
                 "models: {NAME: {correctness: GATE, performance: GATE}}");
  }
}

void write_coverage(const Gate& gate, Json& json) {
  Json models = Json::object();
  for (const CoverageRow& row : gate.coverage) {
    models[row.model] = {{"correctness", row.correctness}, {"performance", row.performance}};
  }
  json["models"] = std::move(models);
}

void read_enablement(spec::Fields& fields, Gate& gate) {
  fields.each_named("blockers", "blocker", [&](const std::string& name, spec::Fields& entry) {
    if (name == "production") {
      entry.fault(entry.mark(), "a blocker cannot be called 'production'",
                  "that is the gate which comes after all of them");
    }
    Blocker blocker;
    blocker.name = name;
    blocker.gate = entry.required_text("gate");
    blocker.description = entry.text("description");
    gate.blockers.push_back(std::move(blocker));
  });
  if (gate.blockers.empty()) {
    fields.fault(fields.mark("blockers"), "gate '" + gate.name + "' needs 'blockers'",
                 "blockers: {NAME: {gate: GATE, description: TEXT}}");
  }
  gate.production = fields.required_text("production");
}

void write_enablement(const Gate& gate, Json& json) {
  Json blockers = Json::object();
  for (const Blocker& blocker : gate.blockers) blockers[blocker.name] = {{"gate", blocker.gate}};
  json["blockers"] = std::move(blockers);
  json["production"] = gate.production;
}

std::vector<GatePart> parts_of(const Gate& gate) {
  std::vector<GatePart> parts;
  for (const CoverageRow& row : gate.coverage) {
    parts.push_back({row.model + "/correctness", row.correctness});
    parts.push_back({row.model + "/performance", row.performance});
  }
  for (const Blocker& blocker : gate.blockers) parts.push_back({blocker.name, blocker.gate});
  if (!gate.production.empty()) parts.push_back({"production", gate.production});
  return parts;
}

namespace {

/// What stands against `part` in its place; empty = nothing.
std::string objection(const Gate& whole, const GatePart& part, const Gate* gate) {
  if (gate == nullptr) return "there is no gate '" + part.gate + "' in this file";
  if (is_composite(gate->kind)) {
    return std::string("gate '") + part.gate + "' is of kind " + name_of(gate->kind) +
           ", which has no runs of its own";
  }
  if (whole.kind == GateKind::coverage) {
    const bool performance = part.name.ends_with("/performance");
    if (performance == (gate->kind == GateKind::performance)) return {};
    return "gate '" + part.gate + "' is of kind " + name_of(gate->kind) +
           (performance ? ", which measures no overhead" : ", which proves no equality of runs");
  }
  if (part.name == "production" && gate->recipe != spec::RecipeClass::production) {
    return "gate '" + part.gate + "' takes " + spec::name_of(gate->recipe) +
           " recipes, and enablement ends with the production recipe";
  }
  return {};
}

std::string hint_for(const Qualification& qualification, const Gate& whole, const GatePart& part) {
  if (whole.kind == GateKind::enablement && part.name == "production" &&
      qualification.gate(part.gate) != nullptr) {
    return "write 'recipe: production' at that gate";
  }
  std::vector<std::string> names;
  for (const Gate& gate : qualification.gates) {
    if (!is_composite(gate.kind)) names.push_back(gate.name);
  }
  const std::string near = spec::nearest(part.gate, names);
  return near.empty() ? std::string() : "did you mean '" + near + "'?";
}

/// Where the gate's name stands in the file.
spec::Mark mark_of(const spec::Node& root, const Gate& whole, const GatePart& part) {
  const spec::Node* at = root.find("gates");
  const auto go = [&](const std::string& key) {
    if (at != nullptr) at = at->find(key);
  };
  go(whole.name);
  if (whole.kind == GateKind::coverage) {
    const auto slash = part.name.rfind('/');
    go("models");
    go(part.name.substr(0, slash));
    go(part.name.substr(slash + 1));
  } else if (part.name == "production") {
    go("production");
  } else {
    go("blockers");
    go(part.name);
    go("gate");
  }
  return at != nullptr ? at->mark : root.mark;
}

}  // namespace

void check_parts(const Qualification& qualification, const spec::Node& root, spec::Faults& faults) {
  for (const Gate& gate : qualification.gates) {
    for (const GatePart& part : parts_of(gate)) {
      if (part.gate.empty()) continue;  // said already
      const auto why = objection(gate, part, qualification.gate(part.gate));
      if (why.empty()) continue;
      faults.add(mark_of(root, gate, part), why, hint_for(qualification, gate, part));
    }
  }
}

}  // namespace qualify::policy
