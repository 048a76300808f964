#include "load.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>

#include "config_json.hpp"
#include "index.hpp"

namespace qualify::store {

namespace {

constexpr std::size_t kShortestPrefix = 6;

Error at(const char* hop, Error error) {
  error.message = std::string(hop) + ": " + error.message;
  return error;
}

/// Could the bundle that cannot be read be called `name`? Entries that we write say so.
bool may_be_named(const IndexEntry& entry, const std::string& name) {
  const std::string end = ref_name_for("", entry.manifest.digest);
  return !entry.ref_name.ends_with(end) || entry.ref_name == name + end;
}

void add_paths(Bundle& bundle, const IndexEntry* entry) {
  if (entry == nullptr) return;
  for (SealedData& data : bundle.data) {
    const auto found = entry->data_paths.find(data.name);
    if (found != entry->data_paths.end()) data.path = found->second;
  }
}

}  // namespace

Result<Loaded> load_checked(const Digest& digest, const ReadBlob& read,
                            const std::string& context) {
  auto manifest = read(digest);
  if (!manifest) return tl::unexpected(at("manifest", manifest.error()));
  auto config = read_manifest(*manifest, context);
  if (!config) return tl::unexpected(at("manifest", config.error()));
  auto bytes = read(config->digest);
  if (!bytes) return tl::unexpected(at("config", bytes.error()));
  auto bundle = read_config(*bytes, context);
  if (!bundle) return tl::unexpected(at("config", bundle.error()));
  bundle->digest = digest;
  // Whatever else the manifest says must follow from the config.
  if (bytes->size() != config->size ||
      canonical_bytes(manifest_json(*bundle, *config)) != *manifest) {
    return fail(Errc::integrity, "manifest: it does not agree with the bundle's config", context);
  }
  return Loaded{std::move(*bundle), *config, manifest->size()};
}

Result<Loaded> load_checked(const BlobStore& store, const Digest& digest) {
  return load_checked(
      digest, [&](const Digest& blob) { return store.read(blob, kLargestManifest); },
      store.path_of(digest).string());
}

const spec::Arm* Bundle::arm(const std::string& arm_name) const {
  const auto found = std::find_if(arms.begin(), arms.end(),
                                  [&](const spec::Arm& one) { return one.name == arm_name; });
  return found == arms.end() ? nullptr : &*found;
}

Result<Bundle> load(const BlobStore& store, const Digest& digest) {
  const auto index = read_index(store);
  if (!index) return tl::unexpected(index.error());
  const IndexEntry* entry = index->find(digest);
  if (entry == nullptr) {
    return fail(Errc::not_found, "no bundle " + digest.str(), store.root().string(),
                "qualify bundle list");
  }
  auto loaded = load_checked(store, digest);
  if (!loaded) return tl::unexpected(loaded.error());
  add_paths(loaded->bundle, entry);
  return std::move(loaded->bundle);
}

Result<std::vector<Bundle>> list(const BlobStore& store) {
  const auto index = read_index(store);
  if (!index) return tl::unexpected(index.error());
  std::vector<Bundle> bundles;
  for (const IndexEntry& entry : index->entries) {
    auto loaded = load_checked(store, entry.manifest.digest);
    if (!loaded) return tl::unexpected(loaded.error());
    add_paths(loaded->bundle, &entry);
    bundles.push_back(std::move(loaded->bundle));
  }
  return bundles;
}

Result<Digest> resolve(const BlobStore& store, const std::string& reference) {
  const auto index = read_index(store);
  if (!index) return tl::unexpected(index.error());
  const auto& entries = index->entries;
  if (const auto digest = Digest::parse(reference)) {
    if (index->find(*digest) != nullptr) return *digest;
    return fail(Errc::not_found, "no bundle " + digest->str(), store.root().string(),
                "qualify bundle list");
  }
  // A name before a prefix: names are what people choose.
  std::optional<Error> unread;
  for (const IndexEntry& entry : std::views::reverse(entries)) {
    if (entry.ref_name == reference) return entry.manifest.digest;
    auto loaded = load_checked(store, entry.manifest.digest);
    if (!loaded && !unread && may_be_named(entry, reference)) unread = loaded.error();
    if (!loaded || loaded->bundle.name != reference) continue;
    // The newest is meant: an older one must not stand in for one that is damaged.
    if (!unread) return entry.manifest.digest;
    break;
  }
  std::string prefix = reference;
  if (prefix.starts_with("sha256:")) prefix.erase(0, 7);
  std::vector<Digest> found;
  for (const IndexEntry& entry : entries) {
    if (prefix.size() >= kShortestPrefix && entry.manifest.digest.hex().starts_with(prefix)) {
      found.push_back(entry.manifest.digest);
    }
  }
  if (found.size() == 1) return found.front();
  if (unread) {
    if (unread->code == Errc::not_found) unread->code = Errc::integrity;
    return Unexpected(std::move(*unread));
  }
  if (found.size() > 1) {
    std::string all;
    for (const Digest& digest : found) all += (all.empty() ? "" : ", ") + digest.str();
    return fail(Errc::invalid_input, "'" + reference + "' names several bundles", {}, all);
  }
  return fail(Errc::not_found, "no bundle '" + reference + "'", store.root().string(),
              "qualify bundle list; a digest prefix needs at least 6 digits");
}

}  // namespace qualify::store
