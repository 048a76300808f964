#pragma once

#include <optional>
#include <string>
#include <vector>

#include "qualify/base/json.hpp"
#include "qualify/certify/composite.hpp"
#include "qualify/plan/plan.hpp"
#include "qualify/policy/gate.hpp"
#include "qualify/policy/judge.hpp"
#include "qualify/spec/bundle_spec.hpp"

/// From a judged gate to the statement that is signed. Pure. Format: docs/formats/certificate.md.
namespace qualify::certify {

/// https://github.com/in-toto/attestation/blob/main/spec/predicates/test-result.md
inline constexpr const char* kTestResultPredicate =
    "https://in-toto.io/attestation/test-result/v0.1";

/// One run that the verdict rests on.
struct RunCitation {
  std::string run;  ///< planned run id
  std::string arm;
  int attempt = 1;                 ///< the one whose evidence counts
  Digest evidence;                 ///< manifest in the evidence store
  std::string job_id;              ///< equal ids = one allocation
  std::vector<std::string> nodes;  ///< sorted
};

/// Everything that a certificate of one gate says.
struct GateResult {
  policy::Gate gate;
  policy::Judgement judgement;
  Digest bundle_digest;
  std::string bundle_name;
  bool bundle_dirty = false;
  Digest plan_digest;
  std::vector<RunCitation> runs;  ///< in plan order
  std::string scheduler;          ///< "slurm 22.05.8, cluster NAME, …"
  std::string qualification;      ///< "<gate>-<n>" in the journal
  spec::RecipeClass recipe = spec::RecipeClass::debug;
  spec::Topology topology;
  std::optional<plan::Baseline> baseline;  ///< that the plan was bound to
};

/// in-toto Statement v1: subject = bundle manifest, predicate = test result and our own `qualify`.
/// `result` is WARNED when runs shared an allocation, PASSED otherwise.
/// `claim` in it is what its level may be called (exactness::claim_of): nothing below E4 is ever
/// called exact.
/// Errors: refused (verdict is not pass; dirty bundle; a recipe below the gate's), invalid_input
/// (no runs, a run without evidence, no strength level on a pass of equal runs or one below the
/// gate's, no baseline where the gate asks for one, a pair of runs that are not cited).
[[nodiscard]] Result<Json> gate_statement(const GateResult& result);

/// What a certificate says, as far as others must agree with it.
struct Certified {
  std::string qualification;  ///< empty of a gate that rests on others, as `plan` and `runs` are
  std::string verdict;
  std::optional<std::string> level;
  Digest plan;
  Digest policy;
  struct Run {
    std::string run;
    Digest evidence;
  };
  std::vector<Run> runs;  ///< in plan order; at least one
  /// Of a gate that rests on others: at least one, and the gate as it was when this was earned.
  std::vector<PartCitation> parts;
  std::optional<policy::Gate> composite;
};

/// Reads back the predicate that gate_statement or composite_statement wrote. Errors: integrity.
[[nodiscard]] Result<Certified> read_certified(const Json& predicate);

}  // namespace qualify::certify
