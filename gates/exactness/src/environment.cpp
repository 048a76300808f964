#include "qualify/exactness/environment.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace qualify::exactness {

namespace {

void flatten(const std::string& prefix, const Json& value, Environment& to) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      flatten(prefix.empty() ? key : prefix + "." + key, member, to);
    }
    return;
  }
  to[prefix] = value.is_string() ? value.get<std::string>()
                                 : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

const char* name_of(DifferenceClass kind) {
  switch (kind) {
    case DifferenceClass::identity:
      return "identity";
    case DifferenceClass::declared:
      return "declared";
    case DifferenceClass::undeclared:
      return "undeclared";
  }
  return "undeclared";
}

bool is_identity(const std::string& name) {
  std::string_view word = name;
  for (const std::string_view prefix : {"env.", "environment.", "task."}) {
    if (word.starts_with(prefix)) word.remove_prefix(prefix.size());
  }
  // Counts, limits and bindings among Slurm's variables do change a run: those are not identity.
  constexpr std::array<std::string_view, 29> exact = {"SLURM_JOB_ID",
                                                      "SLURM_JOB_COMMENT",
                                                      "SLURM_JOBID",
                                                      "SLURM_JOB_NAME",
                                                      "SLURM_JOB_NODELIST",
                                                      "SLURM_NODELIST",
                                                      "SLURM_STEP_NODELIST",
                                                      "SLURM_STEP_ID",
                                                      "SLURM_STEPID",
                                                      "SLURMD_NODENAME",
                                                      "SLURM_JOB_START_TIME",
                                                      "SLURM_JOB_END_TIME",
                                                      "SLURM_TOPOLOGY_ADDR",
                                                      "SLURM_LAUNCH_NODE_IPADDR",
                                                      "SLURM_SRUN_COMM_HOST",
                                                      "SLURM_SRUN_COMM_PORT",
                                                      "SLURM_TASK_PID",
                                                      "SLURM_JOB_RESERVATION",
                                                      "SLURM_SUBMIT_HOST",
                                                      "SLURM_SUBMIT_DIR",
                                                      "SLURM_STEP_LAUNCHER_PORT",
                                                      "HOSTNAME",
                                                      "MASTER_ADDR",
                                                      "MASTER_PORT",
                                                      "PET_MASTER_ADDR",
                                                      "PET_MASTER_PORT",
                                                      "PET_RDZV_ENDPOINT",
                                                      "PET_RDZV_ID",
                                                      "TMPDIR"};
  if (std::find(exact.begin(), exact.end(), word) != exact.end()) return true;
  constexpr std::array<std::string_view, 9> captured = {"node.name", "node.names", "nodes",
                                                        "host",      "hostname",   "job.id",
                                                        "job_id",    "gpu.uuids",  "boot_id"};
  if (std::find(captured.begin(), captured.end(), word) != captured.end()) return true;
  return word.starts_with("PMIX_") || word.starts_with("PMI_") || word.starts_with("QUALIFY_") ||
         word.ends_with(".uuid") || word.ends_with("_time") || word.ends_with(".time") ||
         word.ends_with("_at") || word.ends_with(".hostname") || word.ends_with(".pid");
}

EnvironmentComparison compare_environments(const Environment& a, const Environment& b,
                                           const std::vector<std::string>& declared) {
  EnvironmentComparison result;
  const auto note = [&](const std::string& name, const std::string* in_a, const std::string* in_b) {
    const bool listed =
        std::any_of(declared.begin(), declared.end(), [&](const std::string& allowed) {
          return name == allowed || name == "env." + allowed || name == "environment." + allowed;
        });
    // Declared goes first: a bundle that lists a name means it.
    const auto kind = listed              ? DifferenceClass::declared
                      : is_identity(name) ? DifferenceClass::identity
                                          : DifferenceClass::undeclared;
    result.differences.push_back({name, in_a != nullptr ? *in_a : "", in_b != nullptr ? *in_b : "",
                                  in_a != nullptr, in_b != nullptr, kind});
  };
  auto i = a.begin();
  auto k = b.begin();
  while (i != a.end() || k != b.end()) {
    if (k == b.end() || (i != a.end() && i->first < k->first)) {
      note(i->first, &i->second, nullptr);
      ++i;
    } else if (i == a.end() || k->first < i->first) {
      note(k->first, nullptr, &k->second);
      ++k;
    } else {
      if (i->second != k->second) note(i->first, &i->second, &k->second);
      ++i;
      ++k;
    }
  }
  return result;
}

std::string EnvironmentComparison::why_inconclusive() const {
  std::string names;
  for (const EnvironmentDifference& difference : differences) {
    if (difference.kind != DifferenceClass::undeclared) continue;
    names += (names.empty() ? "" : ", ") + difference.name;
  }
  if (names.empty()) return {};
  return "the runs' environments differ in what neither identifies a run nor is declared by the "
         "bundle: " +
         names;
}

void weigh(const EnvironmentComparison& environments, Comparison& comparison) {
  const std::string why = environments.why_inconclusive();
  if (why.empty()) return;
  comparison.reasons.push_back(why);
  if (comparison.outcome != Outcome::equal) return;
  comparison.outcome = Outcome::inconclusive;
  comparison.level.reset();
}

Result<Environment> environment_from(const Json& record) {
  if (!record.is_object()) {
    return fail(Errc::invalid_input, "a captured environment must be a JSON object");
  }
  Environment environment;
  flatten("", record, environment);
  return environment;
}

Json to_json(const EnvironmentComparison& comparison) {
  Json list = Json::array();
  for (const EnvironmentDifference& one : comparison.differences) {
    list.push_back({{"name", one.name},
                    {"class", name_of(one.kind)},
                    {"a", one.has_a ? Json(one.a) : Json(nullptr)},
                    {"b", one.has_b ? Json(one.b) : Json(nullptr)}});
  }
  const std::string why = comparison.why_inconclusive();
  return {{"differences", std::move(list)},
          {"why_inconclusive", why.empty() ? Json(nullptr) : Json(why)}};
}

}  // namespace qualify::exactness
