#include "bundle_json.hpp"

#include <nlohmann/json.hpp>

#include "layout.hpp"

namespace qualify::store {

namespace {

using Text = std::map<std::string, std::string>;

Json topology_json(const spec::Topology& topology) {
  return {{"nodes", topology.nodes},
          {"gpus_per_node", topology.gpus_per_node},
          {"tensor_parallel", topology.tensor_parallel},
          {"pipeline_parallel", topology.pipeline_parallel},
          {"expert_parallel", topology.expert_parallel},
          {"context_parallel", topology.context_parallel},
          {"data_parallel", topology.data_parallel}};
}

spec::RecipeClass recipe_from(const std::string& name) {
  for (const auto recipe :
       {spec::RecipeClass::production, spec::RecipeClass::proxy, spec::RecipeClass::debug}) {
    if (name == spec::name_of(recipe)) return recipe;
  }
  throw std::invalid_argument("recipe '" + name + "'");
}

spec::ContainerKind container_from(const std::string& name) {
  for (const auto kind : {spec::ContainerKind::none, spec::ContainerKind::sqsh,
                          spec::ContainerKind::sif, spec::ContainerKind::oci_layout,
                          spec::ContainerKind::oci_archive, spec::ContainerKind::reference}) {
    if (name == spec::name_of(kind)) return kind;
  }
  throw std::invalid_argument("container kind '" + name + "'");
}

}  // namespace

Json descriptor_json(const Descriptor& descriptor) {
  Json json = {{"mediaType", descriptor.media_type},
               {"digest", descriptor.digest.str()},
               {"size", descriptor.size}};
  if (!descriptor.title.empty()) json["annotations"] = {{kTitle, descriptor.title}};
  return json;
}

Descriptor descriptor_from(const Json& json) {
  Descriptor descriptor;
  descriptor.media_type = json.at("mediaType").get<std::string>();
  descriptor.digest = Digest::parse(json.at("digest").get<std::string>()).value();
  descriptor.size = json.at("size").get<std::uint64_t>();
  if (json.contains("annotations")) {
    descriptor.title = json.at("annotations").value(kTitle, std::string());
  }
  return descriptor;
}

Json config_json(const Bundle& bundle) {
  Json code = Json::array();
  for (const SealedCode& tree : bundle.code) {
    code.push_back({{"name", tree.name},
                    {"commit", tree.commit},
                    {"revision", tree.revision},
                    {"archive", descriptor_json(tree.archive)}});
  }
  Json configs = Json::array();
  for (const SealedConfig& config : bundle.configs) {
    configs.push_back({{"name", config.name},
                       {"file_name", config.file_name},
                       {"content", descriptor_json(config.content)}});
  }
  Json container = {{"kind", spec::name_of(bundle.container.kind)}};
  if (bundle.container.kind == spec::ContainerKind::reference) {
    container["reference"] = bundle.container.reference;
  } else if (bundle.container.kind != spec::ContainerKind::none) {
    container["content"] = descriptor_json(bundle.container.content);
  }
  Json data = Json::array();
  for (const SealedData& entry : bundle.data) {
    data.push_back({{"name", entry.name}, {"digest", entry.digest}, {"path", entry.path}});
  }
  Json arms = Json::array();
  for (const spec::Arm& arm : bundle.arms) {
    arms.push_back(
        {{"name", arm.name}, {"arguments", arm.arguments}, {"environment", arm.environment}});
  }
  Json seeds = Json::array();
  for (const std::int64_t seed : bundle.seeds) seeds.push_back(std::to_string(seed));
  Json outputs = Json::array();
  for (const spec::Output& output : bundle.outputs) {
    outputs.push_back({{"kind", output.kind},
                       {"path", output.path},
                       {"format", output.format},
                       {"required", output.required}});
  }
  return {
      {"schema_version", 1},
      {"name", bundle.name},
      {"recipe", spec::name_of(bundle.recipe)},
      {"model", bundle.model},
      {"dirty", bundle.dirty},
      {"code", std::move(code)},
      {"configs", std::move(configs)},
      {"container", std::move(container)},
      {"environment", bundle.environment},
      {"passed_environment", bundle.passed_environment},
      {"required_environment", bundle.required_environment},
      {"arms", std::move(arms)},
      {"data", std::move(data)},
      {"topology", topology_json(bundle.topology)},
      {"seeds", std::move(seeds)},
      {"launch", {{"tasks_per_node", bundle.launch.tasks_per_node}, {"argv", bundle.launch.argv}}},
      {"outputs", std::move(outputs)}};
}

Result<Bundle> bundle_from_config(const Json& config, const Digest& digest) {
  try {
    if (const int version = config.at("schema_version").get<int>(); version != 1) {
      return fail(Errc::unsupported, "bundle of schema_version " + std::to_string(version),
                  digest.str(), "a newer qualify sealed it");
    }
    Bundle bundle;
    bundle.digest = digest;
    bundle.name = config.at("name").get<std::string>();
    bundle.recipe = recipe_from(config.at("recipe").get<std::string>());
    bundle.model = config.at("model").get<std::string>();
    bundle.dirty = config.at("dirty").get<bool>();
    for (const Json& entry : config.at("code")) {
      bundle.code.push_back(
          {entry.at("name").get<std::string>(), entry.at("commit").get<std::string>(),
           entry.at("revision").get<std::string>(), descriptor_from(entry.at("archive"))});
    }
    for (const Json& entry : config.at("configs")) {
      bundle.configs.push_back({entry.at("name").get<std::string>(),
                                entry.at("file_name").get<std::string>(),
                                descriptor_from(entry.at("content"))});
    }
    const Json& container = config.at("container");
    bundle.container.kind = container_from(container.at("kind").get<std::string>());
    if (container.contains("reference")) {
      bundle.container.reference = container.at("reference").get<std::string>();
    }
    if (container.contains("content")) {
      bundle.container.content = descriptor_from(container.at("content"));
    }
    bundle.environment = config.at("environment").get<Text>();
    bundle.passed_environment = config.at("passed_environment").get<std::vector<std::string>>();
    bundle.required_environment = config.at("required_environment").get<Text>();
    for (const Json& entry : config.at("arms")) {
      bundle.arms.push_back({entry.at("name").get<std::string>(),
                             entry.at("arguments").get<std::vector<std::string>>(),
                             entry.at("environment").get<Text>(),
                             {}});
    }
    for (const Json& entry : config.at("data")) {
      bundle.data.push_back({entry.at("name").get<std::string>(),
                             entry.at("digest").get<std::string>(),
                             entry.at("path").get<std::string>()});
    }
    const Json& topology = config.at("topology");
    const auto count = [&](const char* key) { return topology.at(key).get<std::uint32_t>(); };
    bundle.topology = {count("nodes"),           count("gpus_per_node"),
                       count("tensor_parallel"), count("pipeline_parallel"),
                       count("expert_parallel"), count("context_parallel"),
                       count("data_parallel")};
    for (const Json& seed : config.at("seeds")) {
      bundle.seeds.push_back(std::stoll(seed.get<std::string>()));
    }
    bundle.launch.tasks_per_node = config.at("launch").at("tasks_per_node").get<std::uint32_t>();
    bundle.launch.argv = config.at("launch").at("argv").get<std::vector<std::string>>();
    for (const Json& entry : config.at("outputs")) {
      bundle.outputs.push_back(
          {entry.at("kind").get<std::string>(), entry.at("path").get<std::string>(),
           entry.at("format").get<std::string>(), entry.at("required").get<bool>()});
    }
    return bundle;
  } catch (const std::exception& error) {
    return fail(Errc::integrity, std::string("the bundle's config is damaged: ") + error.what(),
                digest.str());
  }
}

Json manifest_json(const Bundle& bundle, const Descriptor& config) {
  Json layers = Json::array();
  for (const SealedCode& tree : bundle.code) layers.push_back(descriptor_json(tree.archive));
  for (const SealedConfig& entry : bundle.configs) {
    layers.push_back(descriptor_json(entry.content));
  }
  const bool stored = bundle.container.kind != spec::ContainerKind::none &&
                      bundle.container.kind != spec::ContainerKind::reference;
  if (stored) layers.push_back(descriptor_json(bundle.container.content));
  return {{"schemaVersion", 2},
          {"mediaType", kManifestType},
          {"artifactType", kArtifactType},
          {"config", descriptor_json(config)},
          {"layers", std::move(layers)}};
}

const spec::Arm* Bundle::arm(const std::string& arm_name) const {
  for (const spec::Arm& candidate : arms) {
    if (candidate.name == arm_name) return &candidate;
  }
  return nullptr;
}

Json to_json(const Bundle& bundle) {
  Json json = config_json(bundle);
  json["digest"] = bundle.digest.str();
  return json;
}

}  // namespace qualify::store
