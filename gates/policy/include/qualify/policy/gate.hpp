#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "qualify/base/clock.hpp"
#include "qualify/base/digest.hpp"
#include "qualify/base/json.hpp"
#include "qualify/exactness/compare.hpp"
#include "qualify/policy/localization.hpp"
#include "qualify/policy/people.hpp"
#include "qualify/spec/bundle_spec.hpp"
#include "qualify/statistics/planning.hpp"
#include "qualify/statistics/steps.hpp"

/// Gates as a person declares them in qualification.yaml. Format page:
/// docs/formats/qualification.md.
namespace qualify::policy {

/// Recorded by name; the numbers mean nothing outside of one process.
enum class GateKind {
  repeatability,
  baseline,
  restart,
  scale,
  localization,
  coverage,
  performance,
  enablement
};
inline constexpr std::array kGateKinds = {
    GateKind::repeatability, GateKind::baseline, GateKind::restart,     GateKind::scale,
    GateKind::localization,  GateKind::coverage, GateKind::performance, GateKind::enablement};
[[nodiscard]] const char* name_of(GateKind kind);
/// Errors: invalid_input.
[[nodiscard]] Result<GateKind> parse_gate_kind(const std::string& text);
/// Has no runs of its own: rests on what other gates came to (coverage, enablement).
[[nodiscard]] bool is_composite(GateKind kind);
/// What a gate of this kind asks of a bundle's recipe where it does not say.
[[nodiscard]] spec::RecipeClass default_recipe(GateKind kind);
/// production > proxy > debug: does a recipe of class `has` answer where `least` is asked for?
[[nodiscard]] bool suffices(spec::RecipeClass has, spec::RecipeClass least);

/// What counts as two independent runs.
enum class Allocation { separate, same };

/// On which nodes the runs after the first are, measured by the first one's. Whichever it was in
/// the end is in the certificate.
enum class NodeChoice { any, same, disjoint };

/// Of a gate of kind scale: exactly so many, no more and no fewer.
struct Scale {
  std::uint32_t nodes = 0;
  std::uint32_t gpus_per_node = 0;
  [[nodiscard]] std::string str() const;  ///< "384 nodes x 8 GPUs"
};

/// One model of a coverage matrix, with the gates that answer for its two cells.
struct CoverageRow {
  std::string model;
  std::string correctness;
  std::string performance;
};

/// What stands between a model and its production recipe, closed by a gate of its own.
struct Blocker {
  std::string name;
  std::string gate;
  std::string description;  ///< no part of the policy digest
};

struct Gate {
  std::string name;
  GateKind kind = GateKind::repeatability;
  std::string description;
  std::string schedule;           ///< when it is due again (recurrence.hpp); empty = by hand only
  std::string time_zone = "UTC";  ///< of the schedule; an IANA name
  Duration run_limit{};           ///< wall-clock limit of one run; longer is a workload timeout
  /// A running workload that shows no new iteration for so long hangs, and is cancelled; its
  /// start-up counts too. 0 = only run_limit ends it.
  Duration heartbeat{};
  /// Least class of the bundle's recipe.
  spec::RecipeClass recipe = spec::RecipeClass::debug;
  Duration max_age{};  ///< a certificate that is older is stale; 0 = none is too old

  // repeatability, baseline, scale and restart
  std::string arm;  ///< restart: of the run that is not interrupted
  exactness::Level level = exactness::Level::e1;
  std::vector<std::string> required_metrics;
  std::int64_t steps = 0;  ///< iterations 1..steps must all be there; 0 = whatever the runs have

  // repeatability, baseline and scale
  std::uint32_t runs = 2;
  Allocation allocation = Allocation::separate;
  NodeChoice nodes = NodeChoice::any;

  std::string baseline;  ///< baseline: the established one's name (`qualify baseline set`)
  Scale scale;           ///< scale

  // restart
  std::string resumed_arm;
  std::string broken_arm;           ///< resumes wrongly on purpose; must not come out equal
  std::int64_t from_iteration = 0;  ///< of the checkpoint; compared from the next iteration on

  // localization
  LocalizationCriteria localization;

  // performance; localization: pairs of the traced and the untraced arm
  std::string deterministic_arm;
  std::string nondeterministic_arm;
  std::uint32_t pairs = 4;          ///< AB/BA pairs that are planned; the last look's
  std::uint32_t placebo_pairs = 1;  ///< the nondeterministic arm twice; at least one for a verdict
  std::string metric = "iteration-time";
  std::string decision = "change-overhead";  ///< named decision policy, DESIGN section 9
  std::vector<statistics::Look> looks;       ///< registered looks; empty: one, at `pairs`
  statistics::ExclusionCalendar exclude;     ///< the same steps in both arms

  std::vector<CoverageRow> coverage;  ///< coverage, in file order
  std::vector<Blocker> blockers;      ///< enablement, in file order
  std::string production;             ///< enablement: the gate of the production recipe
};

/// One gate that a composite gate rests on: a cell of coverage ("MODEL/correctness",
/// "MODEL/performance"), a blocker by its name, or "production".
struct GatePart {
  std::string name;
  std::string gate;
};
/// In file order, production last; none for gates that run.
[[nodiscard]] std::vector<GatePart> parts_of(const Gate& gate);

/// The looks that are registered: those declared, or one at max(pairs, 4) with all of the error.
[[nodiscard]] std::vector<statistics::Look> registered_looks(const Gate& gate);

/// Every field that a verdict, or how long it stands, depends on (not descriptions and schedule).
[[nodiscard]] Json to_json(const Gate& gate);
/// The gate that a journal recorded, without description and schedule. Errors: integrity.
[[nodiscard]] Result<Gate> gate_from_json(const Json& json);
/// The policy digest: logged before the first run, cited by the certificate.
[[nodiscard]] Digest policy_digest(const Gate& gate);

struct Qualification {
  std::filesystem::path file;
  std::vector<Gate> gates;  ///< in file order
  std::vector<Person> people;
  std::vector<Role> roles;
  std::vector<Release> releases;
  [[nodiscard]] const Gate* gate(const std::string& name) const;
  [[nodiscard]] const Role* role(const std::string& name) const;
  [[nodiscard]] const Release* release(const std::string& name) const;
};

/// All faults at once, each with file:line:column. Errors: not_found, invalid_input.
[[nodiscard]] Result<Qualification> read_qualification(const std::filesystem::path& file);
/// The same from its text; `file` only names it. Errors: invalid_input.
[[nodiscard]] Result<Qualification> parse_qualification(std::string_view text,
                                                        const std::filesystem::path& file);

}  // namespace qualify::policy
