#include "qualify/policy/gate.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "gate_reading.hpp"
#include "qualify/recurrence/recurrence.hpp"

namespace qualify::policy {

namespace {

constexpr std::int64_t kMaxRuns = 1000;
constexpr std::int64_t kMaxSteps = std::numeric_limits<std::int32_t>::max();
const std::vector<std::string> kKinds = {"repeatability", "performance", "restart"};
const std::vector<std::string> kLevels = {"E0", "E1", "E2", "E3", "E4"};
const std::vector<std::string> kAllocations(std::begin(kAllocationNames),
                                            std::end(kAllocationNames));
const std::vector<std::string> kNodeChoices(std::begin(kNodeChoiceNames),
                                            std::end(kNodeChoiceNames));
const std::vector<std::string> kDecisions = {"change-overhead", "mode-overhead"};

/// What a gate asks of runs that must be equal.
void read_equality(spec::Fields& fields, Gate& gate) {
  gate.level = static_cast<exactness::Level>(fields.choice("level", kLevels, 1));
  gate.required_metrics = fields.texts("metrics");
  if (gate.required_metrics.empty()) {
    fields.fault(fields.mark("metrics"), "gate '" + gate.name + "' needs 'metrics'",
                 "list the metrics that every run must have, such as [lm loss, grad-norm]");
  }
  gate.steps = fields.integer("steps", 0, 1, kMaxSteps);
}

void read_repeatability(spec::Fields& fields, Gate& gate) {
  gate.arm = fields.required_text("arm");
  gate.runs = static_cast<std::uint32_t>(fields.integer("runs", 2, 2, kMaxRuns));
  gate.allocation = static_cast<Allocation>(fields.choice("allocation", kAllocations, 0));
  gate.nodes = static_cast<NodeChoice>(fields.choice("nodes", kNodeChoices, 0));
  if (gate.allocation == Allocation::same && gate.nodes == NodeChoice::disjoint) {
    fields.fault(fields.mark("nodes"), "runs inside one allocation are on the same nodes",
                 "write allocation: separate, or leave 'nodes' out");
  }
  read_equality(fields, gate);
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

double alpha_of(spec::Fields& look) {
  const std::string text = look.required_text("alpha");
  double alpha = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), alpha);
  if (error != std::errc{} || end != text.data() + text.size() || !(alpha > 0 && alpha < 0.5)) {
    look.fault(look.mark("alpha"), "alpha '" + text + "' is not a number between 0 and 0.5",
               "the share of the 5% error that this look spends, such as 0.01");
  }
  return alpha;
}

/// `pairs`, and `looks` where the gate decides at more than one number of pairs.
void read_looks(spec::Fields& fields, Gate& gate) {
  fields.each("looks", "look of gate '" + gate.name + "'", [&](spec::Fields& look) {
    const auto pairs = static_cast<std::uint32_t>(look.integer("pairs", 4, 4, kMaxRuns));
    gate.looks.push_back({pairs, alpha_of(look)});
  });
  const std::uint32_t last = gate.looks.empty() ? 4 : gate.looks.back().pairs;
  gate.pairs = static_cast<std::uint32_t>(fields.integer("pairs", last, 1, kMaxRuns));
  if (gate.looks.empty()) return;
  if (gate.pairs != last) {
    fields.fault(fields.mark("pairs"), "pairs must be those of the last look",
                 "leave 'pairs' out, or write " + std::to_string(last));
  }
  if (auto ok = statistics::check_looks(gate.looks, kAlpha); !ok) {
    fields.fault(fields.mark("looks"), ok.error().message,
                 "alphas must add up to at most 0.05, such as 0.01 at 4 pairs and 0.04 at 6");
  }
}

statistics::Recurring read_recurring(spec::Fields& exclude, const std::string& key) {
  statistics::Recurring event;
  exclude.section(key, "'" + key + "' exclusion", [&](spec::Fields& fields) {
    event.every = fields.integer("every", 0, 1, kMaxSteps);
    event.after = fields.integer("after", 1, 0, kMaxSteps);
    if (!fields.has("every")) fields.fault(fields.mark(), "'" + key + "' needs 'every'");
  });
  return event;
}

void read_exclusions(spec::Fields& exclude, statistics::ExclusionCalendar& calendar) {
  calendar.init_steps = exclude.integer("init_steps", 1, 0, kMaxSteps);
  calendar.first_iterations = exclude.integer("first_iterations", 0, 0, kMaxSteps);
  calendar.warmup_steps = exclude.integer("warmup_steps", 0, 0, kMaxSteps);
  calendar.evaluation = read_recurring(exclude, "evaluation");
  calendar.checkpoint = read_recurring(exclude, "checkpoint");
  exclude.each("profiler", "'profiler' exclusion", [&](spec::Fields& fields) {
    const std::int64_t first = fields.integer("first", 0, 1, kMaxSteps);
    const std::int64_t last = fields.integer("last", first, 1, kMaxSteps);
    if (!fields.has("first") || last < first) {
      fields.fault(fields.mark(), "a range needs 'first' and a 'last' that is not before it");
    }
    calendar.profiler.push_back({first, last});
  });
  calendar.restarts = exclude.integers("restarts");
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
  gate.metric = fields.text("metric", "iteration-time");
  gate.decision = kDecisions[fields.choice("decision", kDecisions, 0)];
  read_looks(fields, gate);
  gate.placebo_pairs = static_cast<std::uint32_t>(fields.integer("placebo_pairs", 1, 0, kMaxRuns));
  fields.section("exclude", "exclusions of gate '" + gate.name + "'",
                 [&](spec::Fields& exclude) { read_exclusions(exclude, gate.exclude); });
}

void read_schedule(spec::Fields& fields, Gate& gate) {
  gate.schedule = fields.text("schedule");
  gate.time_zone = fields.text("time_zone", "UTC");
  if (!fields.has("schedule")) {
    if (fields.has("time_zone")) {
      fields.fault(fields.mark("time_zone"), "a time zone without 'schedule' says nothing");
    }
    return;
  }
  if (const auto read = recurrence::Recurrence::parse(gate.schedule, gate.time_zone); !read) {
    const bool zone = read.error().message.find("zone") != std::string::npos;
    fields.fault(fields.mark(zone ? "time_zone" : "schedule"), read.error().message,
                 read.error().hint);
  }
}

}  // namespace

const char* name_of(GateKind kind) {
  return kKinds[static_cast<std::size_t>(kind)].c_str();
}

std::vector<statistics::Look> registered_looks(const Gate& gate) {
  if (!gate.looks.empty()) return gate.looks;
  return {{std::max<std::uint32_t>(gate.pairs, 4), kAlpha}};
}

const Gate* Qualification::gate(const std::string& name) const {
  for (const Gate& candidate : gates) {
    if (candidate.name == name) return &candidate;
  }
  return nullptr;
}

Result<Qualification> read_qualification(const std::filesystem::path& file) {
  const auto root = spec::read_yaml(file);
  if (!root) return tl::unexpected(root.error());
  return read_gates(*root, file.string());
}

Result<Qualification> read_gates(const spec::Node& root, const std::string& file) {
  Qualification qualification;
  qualification.file = file;
  spec::Faults faults(file);
  spec::Fields fields(root, "the qualification", faults);
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
    read_schedule(entry, gate);
    gate.run_limit = entry.duration("run_limit", std::chrono::hours(1));
    gate.heartbeat = entry.duration("heartbeat", Duration::zero());
    switch (gate.kind) {
      case GateKind::repeatability:
        read_repeatability(entry, gate);
        break;
      case GateKind::performance:
        read_performance(entry, gate);
        break;
      case GateKind::restart:
        read_restart(entry, gate);
        break;
    }
    qualification.gates.push_back(std::move(gate));
  });
  fields.finish();
  if (faults.empty() && qualification.gates.empty()) {
    faults.add(root.mark, "no gates are declared", "add at least one below 'gates:'");
  }
  if (!faults.empty()) return faults.fail();
  return qualification;
}

}  // namespace qualify::policy
