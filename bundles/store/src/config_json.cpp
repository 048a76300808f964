#include "config_json.hpp"

#include <nlohmann/json.hpp>

#include "config_rules.hpp"
#include "media_types.hpp"

namespace qualify::store {

namespace {

constexpr int kSchemaVersion = 1;
constexpr std::uint64_t kLargestSize = (1ULL << 53U) - 1;  ///< bytes; beyond, JSON is not exact

constexpr spec::RecipeClass kRecipes[] = {spec::RecipeClass::production, spec::RecipeClass::proxy,
                                          spec::RecipeClass::debug};
constexpr spec::ContainerKind kContainers[] = {
    spec::ContainerKind::none,        spec::ContainerKind::sqsh,
    spec::ContainerKind::sif,         spec::ContainerKind::oci_layout,
    spec::ContainerKind::oci_archive, spec::ContainerKind::reference};

template <class Enum, std::size_t N>
Enum from_name(const Enum (&all)[N], const std::string& name) {
  for (const Enum one : all) {
    if (name == spec::name_of(one)) return one;
  }
  throw std::invalid_argument("unknown value '" + name + "'");
}

Json container_json(const SealedContainer& container) {
  Json json{{"kind", spec::name_of(container.kind)}};
  if (container.content.size > 0) json["content"] = descriptor_json(container.content);
  if (!container.reference.empty()) json["reference"] = container.reference;
  return json;
}

Descriptor descriptor_or_throw(const Json& json) {
  auto descriptor = read_descriptor(json, {});
  if (!descriptor) throw std::invalid_argument(descriptor.error().message);
  return *descriptor;
}

Bundle read_members(const Json& json) {
  Bundle bundle;
  json.at("name").get_to(bundle.name);
  bundle.recipe = from_name(kRecipes, json.at("recipe").get<std::string>());
  json.at("model").get_to(bundle.model);
  json.at("dirty").get_to(bundle.dirty);
  for (const Json& item : json.at("code")) {
    bundle.code.push_back({item.at("name"), item.at("commit"), item.at("revision"),
                           descriptor_or_throw(item.at("archive"))});
  }
  for (const Json& item : json.at("configs")) {
    bundle.configs.push_back(
        {item.at("name"), item.at("file_name"), descriptor_or_throw(item.at("content"))});
  }
  const Json& container = json.at("container");
  bundle.container.kind = from_name(kContainers, container.at("kind").get<std::string>());
  if (container.contains("content")) {
    bundle.container.content = descriptor_or_throw(container.at("content"));
  }
  bundle.container.reference = container.value("reference", "");
  json.at("environment").get_to(bundle.environment);
  json.at("passed_environment").get_to(bundle.passed_environment);
  json.at("required_environment").get_to(bundle.required_environment);
  for (const Json& item : json.at("arms")) {
    bundle.arms.push_back({item.at("name"), item.at("arguments"), item.at("environment"), {}});
  }
  for (const Json& item : json.at("data")) {
    SealedData data{item.at("name"), item.at("digest"), {}, {}};
    if (item.contains("manifest")) data.manifest = descriptor_or_throw(item.at("manifest"));
    bundle.data.push_back(std::move(data));
  }
  bundle.topology = spec::topology_from_json(json.at("topology")).value();
  for (const Json& seed : json.at("seeds")) {
    bundle.seeds.push_back(std::stoll(seed.get<std::string>()));
  }
  json.at("launch").at("tasks_per_node").get_to(bundle.launch.tasks_per_node);
  json.at("launch").at("argv").get_to(bundle.launch.argv);
  for (const Json& item : json.at("outputs")) {
    bundle.outputs.push_back(
        {item.at("kind"), item.at("path"), item.at("format"), item.at("required")});
  }
  return bundle;
}

}  // namespace

Json descriptor_json(const Descriptor& descriptor) {
  Json json{{"mediaType", descriptor.media_type},
            {"digest", descriptor.digest.str()},
            {"size", descriptor.size}};
  if (!descriptor.title.empty()) json["annotations"] = {{kTitle, descriptor.title}};
  return json;
}

Result<Descriptor> read_descriptor(const Json& json, const std::string& context) {
  try {
    const auto digest = Digest::parse(json.at("digest").get<std::string>());
    if (!digest) return fail(Errc::integrity, digest.error().message, context);
    if (!json.at("size").is_number_unsigned() || json.at("size") > kLargestSize) {
      return fail(Errc::integrity, "a descriptor's size is not a whole number below 2^53", context);
    }
    Descriptor descriptor{json.at("mediaType"), *digest, json.at("size"), {}};
    if (json.contains("annotations")) descriptor.title = json["annotations"].value(kTitle, "");
    return descriptor;
  } catch (const Json::exception& error) {
    return fail(Errc::integrity, std::string("not a descriptor: ") + error.what(), context);
  }
}

Json to_json(const Bundle& bundle) {
  Json code = Json::array();
  for (const SealedCode& item : bundle.code) {
    code.push_back({{"name", item.name},
                    {"commit", item.commit},
                    {"revision", item.revision},
                    {"archive", descriptor_json(item.archive)}});
  }
  Json configs = Json::array();
  for (const SealedConfig& item : bundle.configs) {
    configs.push_back({{"name", item.name},
                       {"file_name", item.file_name},
                       {"content", descriptor_json(item.content)}});
  }
  Json arms = Json::array();
  for (const spec::Arm& arm : bundle.arms) {
    arms.push_back(
        {{"name", arm.name}, {"arguments", arm.arguments}, {"environment", Json(arm.environment)}});
  }
  Json data = Json::array();
  for (const SealedData& item : bundle.data) {
    Json one{{"name", item.name}, {"digest", item.digest}};
    if (item.manifest.size > 0) one["manifest"] = descriptor_json(item.manifest);
    data.push_back(std::move(one));
  }
  // Beyond 2^53 JSON numbers are not exact: seeds are text.
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
      {"schema_version", kSchemaVersion},
      {"name", bundle.name},
      {"recipe", spec::name_of(bundle.recipe)},
      {"model", bundle.model},
      {"dirty", bundle.dirty},
      {"code", std::move(code)},
      {"configs", std::move(configs)},
      {"container", container_json(bundle.container)},
      {"environment", Json(bundle.environment)},
      {"passed_environment", bundle.passed_environment},
      {"required_environment", Json(bundle.required_environment)},
      {"arms", std::move(arms)},
      {"data", std::move(data)},
      {"topology", to_json(bundle.topology)},
      {"seeds", std::move(seeds)},
      {"launch", {{"tasks_per_node", bundle.launch.tasks_per_node}, {"argv", bundle.launch.argv}}},
      {"outputs", std::move(outputs)}};
}

std::vector<Descriptor> layers_of(const Bundle& bundle) {
  std::vector<Descriptor> layers;
  for (const SealedCode& item : bundle.code) layers.push_back(item.archive);
  for (const SealedConfig& item : bundle.configs) layers.push_back(item.content);
  for (const SealedData& item : bundle.data) {
    if (item.manifest.size > 0) layers.push_back(item.manifest);
  }
  if (bundle.container.content.size > 0) layers.push_back(bundle.container.content);
  return layers;
}

Json manifest_json(const Bundle& bundle, const Descriptor& config) {
  Json layers = Json::array();
  for (const Descriptor& layer : layers_of(bundle)) layers.push_back(descriptor_json(layer));
  return {{"schemaVersion", 2},          {"mediaType", kManifestType},
          {"artifactType", kBundleType}, {"config", descriptor_json(config)},
          {"layers", std::move(layers)}, {"annotations", {{kTitle, bundle.name}}}};
}

Result<Descriptor> read_manifest(const std::string& bytes, const std::string& context) {
  auto json = parse_json(bytes, context);
  if (!json || !json->is_object() || !json->contains("config")) {
    return fail(Errc::integrity, "not an OCI manifest", context);
  }
  const Json& type = (*json)["artifactType"];
  if (type != kBundleType) {
    return fail(Errc::unsupported, "the manifest is not one of a bundle", context,
                "its artifactType is " + type.dump() + ", expected " + kBundleType);
  }
  return read_descriptor((*json)["config"], context);
}

Result<Bundle> read_config(const std::string& bytes, const std::string& context) {
  auto json = parse_json(bytes, context);
  if (!json) return fail(Errc::integrity, json.error().message, context);
  try {
    if (json->at("schema_version") != kSchemaVersion) {
      return fail(Errc::unsupported,
                  "the bundle has schema version " + json->at("schema_version").dump(), context,
                  "this qualify reads version 1");
    }
    Bundle bundle = read_members(*json);
    // Whatever the reader did not take in, or takes in another form, shows here.
    const auto again = canonical_json(to_json(bundle));
    if (!again || *again != bytes) {
      return fail(Errc::integrity, "the bundle's config is not in its one canonical form", context);
    }
    if (auto good = check_rules(bundle, context); !good) return tl::unexpected(good.error());
    return bundle;
  } catch (const std::exception& error) {
    return fail(Errc::integrity, std::string("not a bundle config: ") + error.what(), context);
  }
}

}  // namespace qualify::store
