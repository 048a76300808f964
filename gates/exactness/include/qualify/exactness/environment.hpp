#pragma once

#include <map>
#include <string>
#include <vector>

#include "qualify/base/json.hpp"
#include "qualify/exactness/compare.hpp"

namespace qualify::exactness {

/// What a run captured of its surroundings: variables ("env.NCCL_ALGO"), versions ("cuda.driver"),
/// nodes ("nodes"), the command line ("argv"). Values are compared as text.
using Environment = std::map<std::string, std::string>;

enum class DifferenceClass {
  identity,    ///< which machine, when, which job: allowed to differ between any two runs
  declared,    ///< the bundle lists it as a difference of the arms
  undeclared,  ///< neither: the runs are not the same experiment
};
[[nodiscard]] const char* name_of(DifferenceClass kind);

struct EnvironmentDifference {
  std::string name;
  std::string a;  ///< empty when absent, see has_a
  std::string b;
  bool has_a = true;
  bool has_b = true;
  DifferenceClass kind = DifferenceClass::undeclared;
};

struct EnvironmentComparison {
  std::vector<EnvironmentDifference> differences;  ///< by name
  /// Empty when nothing undeclared differs; else the sentence that makes a comparison inconclusive.
  [[nodiscard]] std::string why_inconclusive() const;
};

/// Identity, told by name: what Slurm, PMIx and the batch system set anew for each job, host names,
/// addresses, process ids, times, temporary folders, GPU UUIDs. Environment variables may be given
/// with or without "env." before them.
[[nodiscard]] bool is_identity(const std::string& name);

/// `declared`: names that the bundle lets differ between the two arms; the empty set for two runs
/// of one arm. Pure.
[[nodiscard]] EnvironmentComparison compare_environments(
    const Environment& a, const Environment& b, const std::vector<std::string>& declared = {});

/// A flat map from a captured environment's JSON: nested objects become "outer.inner", other values
/// their canonical text. Errors: invalid_input (not an object).
[[nodiscard]] Result<Environment> environment_from(const Json& record);

/// An equality of runs whose environments differ undeclared proves nothing: it becomes
/// inconclusive. A difference of values stays definitive; the reason is added to it.
void weigh(const EnvironmentComparison& environments, Comparison& comparison);

[[nodiscard]] Json to_json(const EnvironmentComparison& comparison);

}  // namespace qualify::exactness
