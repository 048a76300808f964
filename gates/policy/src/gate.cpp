#include "qualify/policy/gate.hpp"

#include <limits>
#include <nlohmann/json.hpp>

#include "qualify/spec/document.hpp"

namespace qualify::policy {

namespace {

constexpr std::int64_t kMaxRuns = 1000;
constexpr std::int64_t kMaxSteps = std::numeric_limits<std::int32_t>::max();
const std::vector<std::string> kKinds = {"repeatability", "performance"};
const std::vector<std::string> kLevels = {"E0", "E1", "E2", "E3", "E4"};
const std::vector<std::string> kAllocations = {"separate", "same"};
const std::vector<std::string> kDecisions = {"change-overhead", "mode-overhead"};

void read_repeatability(spec::Fields& fields, Gate& gate) {
  gate.arm = fields.required_text("arm");
  gate.runs = static_cast<std::uint32_t>(fields.integer("runs", 2, 2, kMaxRuns));
  gate.level = static_cast<exactness::Level>(fields.choice("level", kLevels, 1));
  gate.allocation = static_cast<Allocation>(fields.choice("allocation", kAllocations, 0));
  gate.required_metrics = fields.texts("metrics");
  if (gate.required_metrics.empty()) {
    fields.fault(fields.mark("metrics"), "gate '" + gate.name + "' needs 'metrics'",
                 "list the metrics that every run must have, such as [lm loss, grad-norm]");
  }
  gate.steps = fields.integer("steps", 0, 1, kMaxSteps);
}

void read_performance(spec::Fields& fields, Gate& gate) {
  fields.section("arms", "arms of gate '" + gate.name + "'", [&](spec::Fields& arms) {
    gate.deterministic_arm = arms.required_text("deterministic");
    gate.nondeterministic_arm = arms.required_text("nondeterministic");
  });
  if (!fields.has("arms")) {
    fields.fault(fields.mark(), "gate '" + gate.name + "' needs 'arms'",
                 "arms: {deterministic: NAME, nondeterministic: NAME}");
  }
  gate.pairs = static_cast<std::uint32_t>(fields.integer("pairs", 1, 1, kMaxRuns));
  gate.metric = fields.text("metric", "iteration-time");
  gate.decision = kDecisions[fields.choice("decision", kDecisions, 0)];
  gate.warmup_steps = fields.integer("warmup_steps", 0, 0, kMaxSteps);
}

}  // namespace

const char* name_of(GateKind kind) {
  return kKinds[static_cast<std::size_t>(kind)].c_str();
}

Json to_json(const Gate& gate) {
  Json json = {
      {"schema_version", 1},
      {"name", gate.name},
      {"kind", name_of(gate.kind)},
      {"run_limit_seconds",
       std::chrono::duration_cast<std::chrono::seconds>(gate.run_limit).count()},
  };
  switch (gate.kind) {
    case GateKind::repeatability:
      json["arm"] = gate.arm;
      json["runs"] = gate.runs;
      json["level"] = exactness::name_of(gate.level);
      json["allocation"] = kAllocations[static_cast<std::size_t>(gate.allocation)];
      json["metrics"] = gate.required_metrics;
      json["steps"] = gate.steps;
      break;
    case GateKind::performance:
      json["arms"] = {{"deterministic", gate.deterministic_arm},
                      {"nondeterministic", gate.nondeterministic_arm}};
      json["pairs"] = gate.pairs;
      json["metric"] = gate.metric;
      json["decision"] = gate.decision;
      json["warmup_steps"] = gate.warmup_steps;
      break;
  }
  return json;
}

Digest policy_digest(const Gate& gate) {
  return digest_of(to_json(gate));
}

const Gate* Qualification::gate(const std::string& name) const {
  for (const Gate& candidate : gates) {
    if (candidate.name == name) return &candidate;
  }
  return nullptr;
}

Result<Qualification> read_qualification(const std::filesystem::path& file) {
  auto root = spec::read_yaml(file);
  if (!root) return tl::unexpected(root.error());
  Qualification qualification;
  qualification.file = file;
  spec::Faults faults(file.string());
  spec::Fields fields(*root, "the qualification", faults);
  fields.schema_version(1);
  fields.each_named("gates", "gate", [&](const std::string& name, spec::Fields& entry) {
    Gate gate;
    gate.name = name;
    // The name becomes a folder and part of a job's name.
    if (name.empty() || name.size() > 64 || name[0] == '.' || name[0] == '-' ||
        name.find_first_not_of(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") !=
            std::string::npos) {
      entry.fault(entry.mark(), "gate name '" + name + "' is not usable",
                  "letters, digits, '.', '_' and '-', at most 64, not starting with '.' or '-'");
    }
    gate.kind = static_cast<GateKind>(entry.choice("kind", kKinds, {}));
    gate.description = entry.text("description");
    gate.run_limit = entry.duration("run_limit", std::chrono::hours(1));
    switch (gate.kind) {
      case GateKind::repeatability:
        read_repeatability(entry, gate);
        break;
      case GateKind::performance:
        read_performance(entry, gate);
        break;
    }
    qualification.gates.push_back(std::move(gate));
  });
  fields.finish();
  if (faults.empty() && qualification.gates.empty()) {
    faults.add(root->mark, "no gates are declared", "add at least one below 'gates:'");
  }
  if (!faults.empty()) return faults.fail();
  return qualification;
}

}  // namespace qualify::policy
