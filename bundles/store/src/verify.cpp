#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "config_json.hpp"
#include "index.hpp"
#include "media_types.hpp"
#include "qualify/store/bundle.hpp"

namespace qualify::store {

namespace {

constexpr std::size_t kShortestPrefix = 6;
constexpr std::uint64_t kLargestManifest = 4U << 20U;

Error at(const char* hop, Error error) {
  error.message = std::string(hop) + ": " + error.message;
  return error;
}

/// Manifest and config, both checked against their digests and each other.
Result<Bundle> load_checked(const BlobStore& store, const Digest& digest, Descriptor* config_out) {
  const std::string path = store.path_of(digest).string();
  auto manifest = store.read(digest, kLargestManifest);
  if (!manifest) return tl::unexpected(at("manifest", manifest.error()));
  auto config = read_manifest(*manifest, path);
  if (!config) return tl::unexpected(at("manifest", config.error()));
  if (config_out != nullptr) *config_out = *config;
  auto bytes = store.read(config->digest, kLargestManifest);
  if (!bytes) return tl::unexpected(at("config", bytes.error()));
  auto bundle = read_config(*bytes, store.path_of(config->digest).string());
  if (!bundle) return tl::unexpected(at("config", bundle.error()));
  bundle->digest = digest;
  // Whatever else the manifest says must follow from the config.
  if (bytes->size() != config->size ||
      canonical_bytes(manifest_json(*bundle, *config)) != *manifest) {
    return fail(Errc::integrity, "manifest: it does not agree with the bundle's config", path);
  }
  return bundle;
}

void add_paths(Bundle& bundle, const IndexEntry* entry) {
  if (entry == nullptr) return;
  for (SealedData& data : bundle.data) {
    const auto found = entry->data_paths.find(data.name);
    if (found != entry->data_paths.end()) data.path = found->second;
  }
}

}  // namespace

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
  auto bundle = load_checked(store, digest, nullptr);
  if (bundle) add_paths(*bundle, entry);
  return bundle;
}

Result<std::vector<Bundle>> list(const BlobStore& store) {
  const auto index = read_index(store);
  if (!index) return tl::unexpected(index.error());
  std::vector<Bundle> bundles;
  for (const IndexEntry& entry : index->entries) {
    auto bundle = load_checked(store, entry.manifest.digest, nullptr);
    if (!bundle) return tl::unexpected(bundle.error());
    add_paths(*bundle, &entry);
    bundles.push_back(std::move(*bundle));
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
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    auto bundle = load_checked(store, entry->manifest.digest, nullptr);
    if (bundle && bundle->name == reference) return entry->manifest.digest;
    if (entry->ref_name == reference) return entry->manifest.digest;
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
  if (found.size() > 1) {
    std::string all;
    for (const Digest& digest : found) all += (all.empty() ? "" : ", ") + digest.str();
    return fail(Errc::invalid_input, "'" + reference + "' names several bundles", {}, all);
  }
  return fail(Errc::not_found, "no bundle '" + reference + "'", store.root().string(),
              "qualify bundle list; a digest prefix needs at least 6 digits");
}

std::vector<Error> verify(const BlobStore& store, const Digest& digest) {
  std::vector<Error> faults;
  if (auto layout = BlobStore::open_read_only(store.root()); !layout) {
    faults.push_back(at("layout", layout.error()));
  }
  const IndexEntry* entry = nullptr;
  const auto index = read_index(store);
  if (!index) {
    faults.push_back(at("index", index.error()));
  } else if (entry = index->find(digest); entry == nullptr) {
    faults.push_back({Errc::integrity,
                      "index: it does not name the bundle " + digest.str(),
                      (store.root() / "index.json").string(),
                      "",
                      {}});
  }
  auto bundle = load_checked(store, digest, nullptr);
  if (!bundle) {
    faults.push_back(bundle.error());
    return faults;
  }
  if (entry != nullptr) {
    std::error_code error;
    const auto size = std::filesystem::file_size(store.path_of(digest), error);
    if (!error && size != entry->manifest.size) {
      faults.push_back({Errc::integrity,
                        "index: it gives the manifest another size",
                        (store.root() / "index.json").string(),
                        "",
                        {}});
    }
    const std::string expected = ref_name_for(bundle->name, digest);
    if (!entry->ref_name.empty() && entry->ref_name != expected) {
      faults.push_back(
          {Errc::integrity,
           "index: it calls the bundle '" + entry->ref_name + "', expected '" + expected + "'",
           (store.root() / "index.json").string(),
           "",
           {}});
    }
  }
  std::set<Digest> seen;
  for (const Descriptor& layer : layers_of(*bundle)) {
    if (!seen.insert(layer.digest).second) continue;
    const auto size =
        store.stream(layer.digest, [](std::span<const std::byte>) { return Result<void>(); });
    if (!size) {
      Error error = at("blob", size.error());
      if (!layer.title.empty()) error.message += " (" + layer.title + ")";
      faults.push_back(std::move(error));
    } else if (*size != layer.size) {
      faults.push_back({Errc::integrity,
                        "blob: it has another size than the manifest says",
                        store.path_of(layer.digest).string(),
                        "",
                        {}});
    }
  }
  return faults;
}

}  // namespace qualify::store
