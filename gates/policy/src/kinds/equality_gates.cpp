#include <nlohmann/json.hpp>

#include "../gate_reading.hpp"

/// Kinds whose runs must be equal bit for bit.
namespace qualify::policy {

namespace {

constexpr std::int64_t kMaxNodes = 1'000'000;
const std::vector<std::string> kLevels = {"E0", "E1", "E2", "E3", "E4"};
const std::vector<std::string> kAllocations = {"separate", "same"};
const std::vector<std::string> kNodeChoices = {"any", "same", "disjoint"};

/// One arm, run again and again.
void read_repeats(spec::Fields& fields, Gate& gate, std::int64_t least_runs) {
  gate.arm = fields.required_text("arm");
  gate.runs = static_cast<std::uint32_t>(fields.integer("runs", 2, least_runs, kMaxRuns));
  gate.allocation = static_cast<Allocation>(fields.choice("allocation", kAllocations, 0));
  gate.nodes = static_cast<NodeChoice>(fields.choice("nodes", kNodeChoices, 0));
  if (gate.allocation == Allocation::same && gate.nodes == NodeChoice::disjoint) {
    fields.fault(fields.mark("nodes"), "runs inside one allocation are on the same nodes",
                 "write allocation: separate, or leave 'nodes' out");
  }
  read_equality(fields, gate);
}

void write_repeats(const Gate& gate, Json& json) {
  json["arm"] = gate.arm;
  json["runs"] = gate.runs;
  json["allocation"] = kAllocations[static_cast<std::size_t>(gate.allocation)];
  if (gate.nodes != NodeChoice::any) {
    json["nodes"] = kNodeChoices[static_cast<std::size_t>(gate.nodes)];
  }
  write_equality(gate, json);
}

}  // namespace

void read_equality(spec::Fields& fields, Gate& gate) {
  gate.level = static_cast<exactness::Level>(fields.choice("level", kLevels, 1));
  gate.required_metrics = fields.texts("metrics");
  if (gate.required_metrics.empty()) {
    fields.fault(fields.mark("metrics"), "gate '" + gate.name + "' needs 'metrics'",
                 "list the metrics that every run must have, such as [lm loss, grad-norm]");
  }
  gate.steps = fields.integer("steps", 0, 1, kMaxSteps);
}

void write_equality(const Gate& gate, Json& json) {
  json["level"] = exactness::name_of(gate.level);
  json["metrics"] = gate.required_metrics;
  json["steps"] = gate.steps;
}

void read_repeatability(spec::Fields& fields, Gate& gate) {
  read_repeats(fields, gate, 2);
}

void write_repeatability(const Gate& gate, Json& json) {
  write_repeats(gate, json);
}

void read_baseline(spec::Fields& fields, Gate& gate) {
  gate.baseline = fields.required_text("baseline");
  read_repeats(fields, gate, 1);
}

void write_baseline(const Gate& gate, Json& json) {
  json["baseline"] = gate.baseline;
  write_repeats(gate, json);
}

void read_scale(spec::Fields& fields, Gate& gate) {
  fields.section("topology", "topology of gate '" + gate.name + "'", [&](spec::Fields& topology) {
    for (const char* key : {"nodes", "gpus_per_node"}) {
      if (!topology.has(key)) {
        topology.fault(topology.mark(), std::string("a topology needs '") + key + "'",
                       "such as {nodes: 384, gpus_per_node: 8}");
      }
    }
    gate.scale.nodes = static_cast<std::uint32_t>(topology.integer("nodes", 1, 1, kMaxNodes));
    gate.scale.gpus_per_node =
        static_cast<std::uint32_t>(topology.integer("gpus_per_node", 0, 0, 1024));
  });
  if (!fields.has("topology")) {
    fields.fault(fields.mark(), "gate '" + gate.name + "' needs 'topology'",
                 "the exact one that it speaks of, such as {nodes: 384, gpus_per_node: 8}");
  }
  read_repeats(fields, gate, 2);
}

void write_scale(const Gate& gate, Json& json) {
  json["topology"] = {{"nodes", gate.scale.nodes}, {"gpus_per_node", gate.scale.gpus_per_node}};
  write_repeats(gate, json);
}

void read_restart(spec::Fields& fields, Gate& gate) {
  fields.section("arms", "arms of gate '" + gate.name + "'", [&](spec::Fields& arms) {
    gate.arm = arms.required_text("uninterrupted");
    gate.resumed_arm = arms.required_text("resumed");
    gate.broken_arm = arms.required_text("broken");
  });
  if (!fields.has("arms")) {
    fields.fault(fields.mark(), "gate '" + gate.name + "' needs 'arms'",
                 "arms: {uninterrupted: NAME, resumed: NAME, broken: NAME}");
  }
  if (gate.resumed_arm == gate.arm || gate.broken_arm == gate.arm ||
      gate.resumed_arm == gate.broken_arm) {
    fields.fault(fields.mark("arms"), "the three arms of gate '" + gate.name + "' must differ",
                 "declare one arm for each in the bundle");
  }
  if (!fields.has("from_iteration")) {
    fields.fault(fields.mark(), "gate '" + gate.name + "' needs 'from_iteration'",
                 "the iteration of the checkpoint that the resumed runs start from");
  }
  gate.from_iteration = fields.integer("from_iteration", 1, 1, kMaxSteps);
  read_equality(fields, gate);
  if (gate.steps != 0 && gate.steps <= gate.from_iteration) {
    fields.fault(fields.mark("steps"), "no step is left after the checkpoint",
                 "'steps' must be greater than 'from_iteration'");
  }
}

void write_restart(const Gate& gate, Json& json) {
  json["arms"] = {
      {"uninterrupted", gate.arm}, {"resumed", gate.resumed_arm}, {"broken", gate.broken_arm}};
  json["from_iteration"] = gate.from_iteration;
  write_equality(gate, json);
}

}  // namespace qualify::policy
