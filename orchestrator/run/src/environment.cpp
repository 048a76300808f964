#include <algorithm>
#include <nlohmann/json.hpp>

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

std::optional<exactness::Environment> captured_environment(const Json& manifest) {
  const Json sentinel = manifest.value("sentinel", Json());
  if (!sentinel.is_object() || sentinel.value("argv", Json::array()).empty()) return std::nullopt;
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
  return environment;
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
