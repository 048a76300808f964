#include "qualify/run/launch.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "qualify/spec/environment_policy.hpp"
#include "qualify/spec/placeholders.hpp"

namespace qualify::run {

namespace {

using Environment = std::map<std::string, std::string>;

/// The path or text that one placeholder stands for.
Result<std::string> value_of(const std::string& name, const store::Bundle& bundle,
                             const JobPlan& plan, const JobLayout& layout) {
  if (name == "output") return layout.output.string();
  if (name == "seed") return std::to_string(plan.seed);
  if (name == "checkpoint" || name == "checkpoint_iteration") {
    if (plan.checkpoint.empty()) {
      return fail(Errc::invalid_input, "{" + name + "} is known in a resumed run only", {},
                  "use it in arms that a restart gate resumes");
    }
    return name == "checkpoint" ? plan.checkpoint.string()
                                : std::to_string(plan.checkpoint_iteration);
  }
  if (name == "container" && bundle.container.kind != spec::ContainerKind::none) {
    return bundle.container.kind == spec::ContainerKind::reference
               ? bundle.container.reference
               : store::BlobStore::open_read_only(plan.store)
                     .map([&](const store::BlobStore& store) {
                       return store.path_of(bundle.container.content.digest).string();
                     });
  }
  const auto rest = [&](const char* prefix) -> std::optional<std::string> {
    if (!name.starts_with(prefix)) return std::nullopt;
    return name.substr(std::string_view(prefix).size());
  };
  if (const auto code = rest("code.")) {
    for (const store::SealedCode& tree : bundle.code) {
      if (tree.name == *code) return (layout.bundle / "code" / *code).string();
    }
  }
  if (const auto config = rest("config.")) {
    for (const store::SealedConfig& entry : bundle.configs) {
      if (entry.name == *config) {
        return (layout.bundle / "config" / *config / entry.file_name).string();
      }
    }
  }
  if (const auto data = rest("data.")) {
    for (const store::SealedData& entry : bundle.data) {
      if (entry.name == *data && !entry.path.empty()) return entry.path;
    }
  }
  return fail(Errc::invalid_input, "the bundle has nothing named {" + name + "}", {},
              "placeholders: {output} {seed} {container} {checkpoint} {checkpoint_iteration} "
              "{code.NAME} {config.NAME} {data.NAME}");
}

Result<std::string> replaced(const std::string& argument, const store::Bundle& bundle,
                             const JobPlan& plan, const JobLayout& layout) {
  std::optional<Error> fault;
  auto text =
      spec::expand_placeholders(argument, [&](std::string_view name) -> std::optional<std::string> {
        auto value = value_of(std::string(name), bundle, plan, layout);
        if (value) return std::move(*value);
        fault = std::move(value.error());
        return std::nullopt;
      });
  if (text) return text;
  Error error = fault ? std::move(*fault) : std::move(text.error());
  error.context = "'" + argument + "'";
  return Unexpected(std::move(error));
}

void set_all(Environment& target, const Environment& values) {
  for (const auto& [name, value] : values) target[name] = value;
}

}  // namespace

Result<std::vector<std::string>> workload_argv(const store::Bundle& bundle, const spec::Arm& arm,
                                               const JobPlan& plan, const JobLayout& layout) {
  std::vector<std::string> argv;
  for (const auto* part : {&bundle.launch.argv, &arm.arguments}) {
    for (const std::string& argument : *part) {
      auto value = replaced(argument, bundle, plan, layout);
      if (!value) return tl::unexpected(value.error());
      argv.push_back(std::move(*value));
    }
  }
  return argv;
}

bool is_inherited(const std::string& name) {
  static constexpr std::array kNames = {"PATH",
                                        "HOME",
                                        "USER",
                                        "LOGNAME",
                                        "SHELL",
                                        "TMPDIR",
                                        "TZ",
                                        "LANG",
                                        "LC_ALL",
                                        "CUDA_VISIBLE_DEVICES",
                                        "GPU_DEVICE_ORDINAL",
                                        "ROCR_VISIBLE_DEVICES"};
  static constexpr std::array kPrefixes = {"SLURM_", "SLURMD_", "PMIX_", "PMI_"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](const char* prefix) { return name.starts_with(prefix); });
}

Result<Environment> workload_environment(const store::Bundle& bundle, const spec::Arm& arm,
                                         const JobPlan& plan, const JobLayout& layout,
                                         const Environment& inherited) {
  if (auto faults = spec::inherited_faults(bundle.required_environment, inherited, "the job");
      !faults.empty()) {
    return Unexpected(std::move(faults.front()));
  }
  Environment environment;
  for (const auto& [name, value] : inherited) {
    if (is_inherited(name)) environment[name] = value;
  }
  Environment declared = bundle.environment;
  set_all(declared, arm.environment);
  for (const auto& [name, value] : declared) {
    auto text = replaced(value, bundle, plan, layout);
    if (!text) return tl::unexpected(text.error());
    environment[name] = std::move(*text);
  }
  if (auto faults = spec::missing_passed(bundle.passed_environment, inherited, "the job");
      !faults.empty()) {
    return Unexpected(std::move(faults.front()));
  }
  for (const std::string& name : bundle.passed_environment) environment[name] = inherited.at(name);
  environment["QUALIFY_GATE"] = plan.gate;
  environment["QUALIFY_RUN"] = plan.run;
  if (!plan.capture_plan.empty()) {
    environment["QUALIFY_CAPTURE_PLAN"] = plan.capture_plan.string();
  }
  for (const auto& [name, value] : bundle.required_environment) {
    const auto found = environment.find(name);
    if (found == environment.end() || found->second != value) {
      return fail(Errc::refused,
                  "the bundle requires " + name + "=" + value + ", effective is " +
                      (found == environment.end() ? "nothing" : "'" + found->second + "'"),
                  "arm '" + arm.name + "'");
    }
  }
  return environment;
}

Environment recorded_environment(const store::Bundle& bundle, Environment environment) {
  for (const std::string& name : bundle.passed_environment) {
    if (environment.count(name) != 0) environment[name] = "(passed at launch)";
  }
  return environment;
}

Environment printable(Environment environment) {
  for (auto& [name, value] : environment) {
    if (!canonical_json(Json(value))) {
      value = "hex:" +
              to_hex(std::span(reinterpret_cast<const std::uint8_t*>(value.data()), value.size()));
    }
  }
  return environment;
}

}  // namespace qualify::run
