#include <algorithm>
#include <nlohmann/json.hpp>

#include "bundle_json.hpp"
#include "index.hpp"
#include "layout.hpp"
#include "qualify/base/files.hpp"

namespace qualify::store {

namespace {

struct Manifest {
  Descriptor config;
  std::vector<Descriptor> layers;
};

Result<Manifest> read_manifest(const BlobStore& store, const Digest& digest) {
  const auto bytes = store.read(digest);
  if (!bytes) return tl::unexpected(bytes.error());
  const auto json = parse_json(*bytes, "manifest " + digest.str());
  if (!json) return fail(Errc::integrity, json.error().message, "manifest " + digest.str());
  try {
    if (json->at("artifactType") != kArtifactType) {
      return fail(Errc::invalid_input, "not a bundle", "manifest " + digest.str());
    }
    Manifest manifest{descriptor_from(json->at("config")), {}};
    for (const Json& layer : json->at("layers")) manifest.layers.push_back(descriptor_from(layer));
    return manifest;
  } catch (const std::exception& error) {
    return fail(Errc::integrity, std::string("the manifest is damaged: ") + error.what(),
                digest.str());
  }
}

}  // namespace

Result<Bundle> load(const BlobStore& store, const Digest& digest) {
  const auto manifest = read_manifest(store, digest);
  if (!manifest) return tl::unexpected(manifest.error());
  const auto bytes = store.read(manifest->config.digest);
  if (!bytes) return tl::unexpected(bytes.error());
  const auto config = parse_json(*bytes, "config " + manifest->config.digest.str());
  if (!config) return fail(Errc::integrity, config.error().message, digest.str());
  return bundle_from_config(*config, digest);
}

Result<std::vector<Bundle>> list(const BlobStore& store) {
  const auto entries = read_index(store);
  if (!entries) return tl::unexpected(entries.error());
  std::vector<Bundle> bundles;
  for (const IndexEntry& entry : *entries) {
    auto bundle = load(store, entry.manifest.digest);
    if (!bundle) return tl::unexpected(bundle.error());
    bundles.push_back(std::move(*bundle));
  }
  return bundles;
}

Result<Digest> resolve(const BlobStore& store, const std::string& reference) {
  const auto entries = read_index(store);
  if (!entries) return tl::unexpected(entries.error());
  if (auto digest = Digest::parse(reference)) {
    for (const IndexEntry& entry : *entries) {
      if (entry.manifest.digest == *digest) return *digest;
    }
    return fail(Errc::not_found, "no bundle " + digest->str(), store.root().string());
  }
  for (auto entry = entries->rbegin(); entry != entries->rend(); ++entry) {
    if (entry->name == reference) return entry->manifest.digest;
  }
  std::string prefix = reference;
  if (prefix.starts_with("sha256:")) prefix.erase(0, 7);
  std::vector<Digest> matches;
  for (const IndexEntry& entry : *entries) {
    if (prefix.size() >= 6 && entry.manifest.digest.hex().starts_with(prefix) &&
        std::find(matches.begin(), matches.end(), entry.manifest.digest) == matches.end()) {
      matches.push_back(entry.manifest.digest);
    }
  }
  if (matches.size() == 1) return matches.front();
  if (matches.size() > 1) {
    std::string all;
    for (const Digest& match : matches) all += " " + match.str();
    return fail(Errc::invalid_input, "'" + reference + "' is the beginning of several bundles", {},
                "write more of it:" + all);
  }
  return fail(Errc::not_found, "no bundle '" + reference + "'", store.root().string(),
              "seal one with: qualify bundle seal bundle.yaml");
}

std::vector<Error> verify(const BlobStore& store, const Digest& digest) {
  std::vector<Error> faults;
  const auto entries = read_index(store);
  if (!entries) {
    faults.push_back(entries.error());
  } else {
    const auto entry = std::find_if(entries->begin(), entries->end(), [&](const IndexEntry& e) {
      return e.manifest.digest == digest;
    });
    if (entry == entries->end()) {
      faults.push_back(
          fail(Errc::not_found, "the index does not list the bundle", digest.str()).value());
    } else {
      std::error_code error;
      const auto size = fs::file_size(store.path_of(digest), error);
      if (!error && size != entry->manifest.size) {
        faults.push_back(
            fail(Errc::integrity, "the index gives another size", "manifest " + digest.str())
                .value());
      }
    }
  }
  const auto manifest = read_manifest(store, digest);
  if (!manifest) {
    faults.push_back(manifest.error());
    return faults;
  }
  std::vector<Descriptor> blobs = {manifest->config};
  blobs.insert(blobs.end(), manifest->layers.begin(), manifest->layers.end());
  for (const Descriptor& blob : blobs) {
    if (auto whole = store.verify(blob.digest); !whole) {
      faults.push_back(whole.error());
      continue;
    }
    std::error_code error;
    if (fs::file_size(store.path_of(blob.digest), error) != blob.size || error) {
      faults.push_back(fail(Errc::integrity,
                            "the manifest gives another size for blob " + blob.digest.str(),
                            digest.str())
                           .value());
    }
  }
  const auto bundle = load(store, digest);
  if (!bundle) {
    if (faults.empty()) faults.push_back(bundle.error());
    return faults;
  }
  // The config says the same as the manifest, blob by blob.
  const Json expected = manifest_json(*bundle, manifest->config);
  if (const auto bytes = store.read(digest); bytes && canonical_bytes(expected) != *bytes) {
    faults.push_back(
        fail(Errc::integrity, "manifest and config do not agree", digest.str()).value());
  }
  return faults;
}

}  // namespace qualify::store
