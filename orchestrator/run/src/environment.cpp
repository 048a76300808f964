#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "qualify/run/evidence.hpp"

namespace qualify::run {

namespace {

std::string without_folder(std::string text, const std::string& folder) {
  if (folder.empty()) return text;
  for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder, at)) {
    text.replace(at, folder.size(), "{attempt}");
  }
  return text;
}

void add_text(const Json& object, const char* key, std::set<std::string>& to) {
  const Json value = object.value(key, Json());
  if (!value.is_null()) to.insert(value.is_string() ? value.get<std::string>() : value.dump());
}

/// Driver, devices and system as the node saw them before the workload.
void add_node(const Json& node, std::map<std::string, std::set<std::string>>& to) {
  const Json verify = node.value("verify", Json::object());
  const Json system = verify.value("system", Json::object());
  add_text(system, "kernel", to["system.kernel"]);
  add_text(system, "cpu", to["system.cpu"]);
  const Json gpus = verify.value("gpus", Json::object());
  add_text(gpus, "driver", to["gpu.driver"]);
  add_text(gpus, "cuda", to["gpu.cuda"]);
  for (const Json& gpu : gpus.value("gpus", Json::array())) {
    for (const char* key : {"name", "vbios", "ecc", "mig"}) {
      add_text(gpu, key, to[std::string("gpu.") + key]);
    }
  }
}

/// Within a container the tasks have variables that the batch step never saw.
void add_task(const Json& node, const std::string& folder, exactness::Environment& to) {
  const Json collect = node.value("collect", Json());
  if (!collect.is_object() || !collect.value("task_environment", Json()).is_object()) return;
  for (const auto& [name, value] : collect.at("task_environment").items()) {
    const bool of_scheduler = name.starts_with("SLURM") || name.starts_with("PMI") ||
                              name.starts_with("QUALIFY_") || name.ends_with("RANK");
    if (of_scheduler) continue;
    std::string text = without_folder(value.get<std::string>(), folder);
    const auto batch = to.find("env." + name);
    if (batch == to.end() || batch->second != text) to["task." + name] = std::move(text);
  }
}

std::map<std::string, std::string> declared_environment(const store::Bundle& bundle,
                                                        const spec::Arm& arm) {
  auto all = bundle.environment;
  for (const auto& [name, value] : arm.environment) all[name] = value;
  return all;
}

std::vector<std::string> declared_argv(const store::Bundle& bundle, const spec::Arm& arm) {
  auto all = bundle.launch.argv;
  all.insert(all.end(), arm.arguments.begin(), arm.arguments.end());
  return all;
}

}  // namespace

Result<std::optional<exactness::Environment>> captured_environment(const Json& manifest,
                                                                   std::string_view node_lines) {
  try {
    const Json sentinel = manifest.value("sentinel", Json());
    if (!sentinel.is_object() || sentinel.value("argv", Json::array()).empty()) {
      return std::optional<exactness::Environment>();
    }
    const std::string folder = manifest.value("folder", std::string());
    exactness::Environment environment;
    for (const auto& [name, value] : sentinel.at("environment").items()) {
      environment["env." + name] = without_folder(value.get<std::string>(), folder);
    }
    std::string argv;
    for (const Json& word : sentinel.at("argv")) {
      argv += (argv.empty() ? "" : " ") + without_folder(word.get<std::string>(), folder);
    }
    environment["argv"] = std::move(argv);
    environment["host"] = sentinel.value("host", std::string());
    environment["nodes"] = sentinel.value("nodes", Json::array()).dump();
    std::map<std::string, std::set<std::string>> of_nodes;
    for (bool first = true; !node_lines.empty(); first = false) {
      const auto end = std::min(node_lines.find('\n'), node_lines.size());
      const auto node = parse_json(node_lines.substr(0, end), "nodes.jsonl");
      if (!node) return tl::unexpected(node.error());
      add_node(*node, of_nodes);
      if (first) add_task(*node, folder, environment);
      node_lines.remove_prefix(std::min(end + 1, node_lines.size()));
    }
    for (const auto& [name, values] : of_nodes) {
      std::string& all = environment[name];
      for (const std::string& value : values) all += (all.empty() ? "" : ", ") + value;
    }
    return std::optional<exactness::Environment>(std::move(environment));
  } catch (const std::exception& error) {
    return fail(Errc::integrity,
                std::string("the captured environment is damaged: ") + error.what());
  }
}

std::vector<std::string> arm_settings(const store::Bundle& bundle, const std::string& name) {
  std::vector<std::string> names;
  const spec::Arm* arm = bundle.arm(name);
  if (arm == nullptr) return names;
  if (!arm->arguments.empty()) names.emplace_back("argv");
  for (const auto& [variable, value] : arm->environment) names.push_back("env." + variable);
  return names;
}

std::vector<std::string> declared_differences(const store::Bundle& bundle_a, const spec::Arm& arm_a,
                                              const store::Bundle& bundle_b,
                                              const spec::Arm& arm_b) {
  std::vector<std::string> names;
  if (declared_argv(bundle_a, arm_a) != declared_argv(bundle_b, arm_b)) names.emplace_back("argv");
  const auto a = declared_environment(bundle_a, arm_a);
  const auto b = declared_environment(bundle_b, arm_b);
  const auto other = [](const auto& map, const std::string& name, const std::string& value) {
    const auto found = map.find(name);
    return found == map.end() || found->second != value;
  };
  for (const auto& [name, value] : a) {
    if (other(b, name, value)) names.push_back("env." + name);
  }
  for (const auto& [name, value] : b) {
    if (!a.contains(name)) names.push_back("env." + name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace qualify::run
