#include "qualify/policy/gate.hpp"

#include <algorithm>

#include "gate_reading.hpp"
#include "qualify/recurrence/recurrence.hpp"

namespace qualify::policy {

namespace {

const std::vector<std::string> kKinds = {"repeatability", "baseline", "restart",     "scale",
                                         "localization",  "coverage", "performance", "enablement"};
static_assert(kGateKinds.size() == 8);
const std::vector<std::string> kRecipes = {"production", "proxy", "debug"};

/// The name becomes a folder and part of a job's name.
void check_name(const std::string& name, spec::Fields& entry) {
  if (!name.empty() && name.size() <= 64 && name[0] != '.' && name[0] != '-' &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
          std::string::npos) {
    return;
  }
  entry.fault(entry.mark(), "gate name '" + name + "' is not usable",
              "letters, digits, '.', '_' and '-', at most 64, not starting with '.' or '-'");
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

/// What every gate that runs may say.
void read_running(spec::Fields& fields, Gate& gate) {
  gate.run_limit = fields.duration("run_limit", std::chrono::hours(1));
  gate.heartbeat = fields.duration("heartbeat", Duration::zero());
  gate.recipe = static_cast<spec::RecipeClass>(
      fields.choice("recipe", kRecipes, static_cast<std::size_t>(default_recipe(gate.kind))));
}

void read_kind(spec::Fields& fields, Gate& gate) {
  switch (gate.kind) {
    case GateKind::repeatability:
      return read_repeatability(fields, gate);
    case GateKind::baseline:
      return read_baseline(fields, gate);
    case GateKind::restart:
      return read_restart(fields, gate);
    case GateKind::scale:
      return read_scale(fields, gate);
    case GateKind::localization:
      return read_localization(fields, gate);
    case GateKind::coverage:
      return read_coverage(fields, gate);
    case GateKind::performance:
      return read_performance(fields, gate);
    case GateKind::enablement:
      return read_enablement(fields, gate);
  }
}

}  // namespace

const char* name_of(GateKind kind) {
  return kKinds[static_cast<std::size_t>(kind)].c_str();
}

Result<GateKind> parse_gate_kind(const std::string& text) {
  for (const GateKind kind : kGateKinds) {
    if (text == name_of(kind)) return kind;
  }
  return fail(Errc::invalid_input, "not a kind of gate: '" + text + "'");
}

bool is_composite(GateKind kind) {
  return kind == GateKind::coverage || kind == GateKind::enablement;
}

spec::RecipeClass default_recipe(GateKind kind) {
  const bool strict = kind == GateKind::scale || kind == GateKind::localization;
  return strict ? spec::RecipeClass::production : spec::RecipeClass::debug;
}

bool suffices(spec::RecipeClass has, spec::RecipeClass least) {
  return has <= least;  // declared from the strongest down
}

std::string Scale::str() const {
  return std::to_string(nodes) + (nodes == 1 ? " node x " : " nodes x ") +
         std::to_string(gpus_per_node) + (gpus_per_node == 1 ? " GPU" : " GPUs");
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

namespace {

/// Gates, and what they say of one another.
Result<Qualification> read_whole(const Result<spec::Node>& root, const std::string& file) {
  if (!root) return tl::unexpected(root.error());
  auto qualification = read_gates(*root, file);
  if (!qualification) return qualification;
  spec::Faults faults(file);
  check_parts(*qualification, *root, faults);
  if (!faults.empty()) return faults.fail();
  return qualification;
}

}  // namespace

Result<Qualification> read_qualification(const std::filesystem::path& file) {
  return read_whole(spec::read_yaml(file), file.string());
}

Result<Qualification> parse_qualification(std::string_view text,
                                          const std::filesystem::path& file) {
  return read_whole(spec::parse_yaml(text, file.string()), file.string());
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
    check_name(name, entry);
    gate.kind = static_cast<GateKind>(entry.choice("kind", kKinds, {}));
    gate.description = entry.text("description");
    read_schedule(entry, gate);
    gate.max_age = entry.duration("max_age", Duration::zero());
    if (!is_composite(gate.kind)) read_running(entry, gate);
    read_kind(entry, gate);
    qualification.gates.push_back(std::move(gate));
  });
  read_people(fields, file, qualification);
  fields.finish();
  if (faults.empty() && qualification.gates.empty()) {
    faults.add(root.mark, "no gates are declared", "add at least one below 'gates:'");
  }
  if (!faults.empty()) return faults.fail();
  return qualification;
}

}  // namespace qualify::policy
