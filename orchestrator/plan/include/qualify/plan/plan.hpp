#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "qualify/base/json.hpp"
#include "qualify/policy/gate.hpp"
#include "qualify/scheduler/grant.hpp"
#include "qualify/store/bundle.hpp"

/// The ordered runs that a gate needs. Pure: the same gate, bundle and grant give the same plan,
/// byte for byte.
namespace qualify::plan {

/// One execution of one arm.
struct Run {
  std::string id;  ///< unique in the plan, usable as a folder name: "a", "pair-1-det"
  std::string arm;
  std::uint32_t pair = 0;  ///< performance: from 1, placebo pairs after the others; 0 = none
  std::int64_t seed = 0;
  /// Runs of one number stand next to each other and share one job, one after the other on the
  /// same nodes; 0 = a job of its own.
  std::uint32_t allocation = 0;
  std::vector<std::string> nodes = {};  ///< to be on wherever all of them can be had; empty = any
  std::string same_nodes_as = {};       ///< an earlier run, on whose nodes this one must be
  std::string other_nodes_than = {};    ///< an earlier run, whose nodes this one must avoid
  std::string resumes = {};             ///< an earlier run, from whose checkpoint this one starts
};

/// The established run that the runs of a gate of kind baseline must equal.
struct Baseline {
  std::string name;
  std::string record;       ///< id of the signed record that set the name
  std::string certificate;  ///< id of the certificate that the record points to
  Digest bundle;
  std::string run;  ///< of that certificate, whose values stand for it
  Digest evidence;  ///< its manifest in the evidence store
};

struct Plan {
  std::string gate;
  policy::GateKind kind = policy::GateKind::repeatability;
  Digest bundle;
  Digest policy;  ///< policy_digest of the gate
  std::string scheduler;
  std::string reservation;
  Digest reservation_fingerprint;
  spec::Topology topology;
  std::uint32_t tasks_per_node = 1;
  Duration run_limit{};
  std::vector<Run> runs;  ///< in the order of execution
  /// Restart: the output below {output} that holds the checkpoint, and the iteration after which a
  /// resumed run goes on.
  std::string checkpoint;
  std::int64_t from_iteration = 0;
  std::optional<Baseline> baseline;  ///< of a gate of kind baseline

  /// Wall-clock bound of runs [first, last): each at its limit, and a margin for its start.
  /// By default of the whole plan.
  [[nodiscard]] Duration duration(std::size_t first = 0, std::size_t last = SIZE_MAX) const;
  /// GPU-hours when every run takes its limit.
  [[nodiscard]] double gpu_hours() const;
  [[nodiscard]] const Run* run(const std::string& id) const;
};

/// A baseline and what its bundle says that runs must have in common with it.
struct Established {
  Baseline baseline;
  spec::Topology topology;
  std::int64_t seed = 0;
};

/// The seed that every run of a bundle gets.
[[nodiscard]] std::int64_t seed_of(const store::Bundle& bundle);

/// `established`: needed by a gate of kind baseline, and by no other.
/// Errors: invalid_input (the bundle has no such arm, another topology than the gate or the
/// baseline; a gate that has no runs), refused (a recipe below what the gate asks for).
[[nodiscard]] Result<Plan> expand(const policy::Gate& gate, const store::Bundle& bundle,
                                  const scheduler::Grant& grant,
                                  const std::optional<Established>& established = {});

/// After how many runs the judge is asked: at each registered look of a performance gate that the
/// plan reaches, and at the end. Ascending; the last is the number of runs. Looks that stop early
/// leave the rest of the plan undone.
[[nodiscard]] std::vector<std::size_t> stages(const policy::Gate& gate, const Plan& plan);

/// One past the last run that shares the job of run `index`.
[[nodiscard]] std::size_t allocation_end(const Plan& plan, std::size_t index);

[[nodiscard]] Json to_json(const Plan& plan);
[[nodiscard]] Json to_json(const Baseline& baseline);
/// Errors: integrity.
[[nodiscard]] Result<Plan> plan_from_json(const Json& json);
[[nodiscard]] Digest plan_digest(const Plan& plan);

/// What runs [first, last) of the plan need of its reservation. A gate needs those up to its first
/// stage before it may start; later stages run where the window still has room for all of them.
[[nodiscard]] scheduler::Requirement requirement(const Plan& plan, std::size_t first,
                                                 std::size_t last);

}  // namespace qualify::plan
