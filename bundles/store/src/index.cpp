#include "index.hpp"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "config_json.hpp"
#include "load.hpp"
#include "media_types.hpp"

namespace qualify::store {

namespace {

Json entry_json(const IndexEntry& entry) {
  Json json = descriptor_json(entry.manifest);
  json["artifactType"] = kBundleType;
  json["annotations"] = {{kRefName, entry.ref_name}};
  if (!entry.data_paths.empty()) {
    const std::string paths = canonical_bytes(Json(entry.data_paths));
    json["annotations"][kDataPaths] = paths;
    json["annotations"][kDataPathsDigest] = sha256(paths).str();
  }
  return json;
}

Json index_json(const Index& index) {
  Json manifests = Json::array();
  for (const IndexEntry& entry : index.entries) manifests.push_back(entry_json(entry));
  return {{"schemaVersion", 2}, {"mediaType", kIndexType}, {"manifests", std::move(manifests)}};
}

Result<IndexEntry> read_entry(const Json& json, const std::string& context) {
  auto manifest = read_descriptor(json, context);
  if (!manifest) return tl::unexpected(manifest.error());
  if (manifest->media_type != kManifestType) {
    return fail(Errc::integrity, "an index entry is not a manifest: " + manifest->media_type,
                context);
  }
  IndexEntry entry;
  entry.manifest = *manifest;
  if (!json.contains("annotations")) return entry;
  const Json& annotations = json["annotations"];
  entry.ref_name = annotations.value(kRefName, "");
  if (!annotations.contains(kDataPaths)) return entry;
  const std::string paths = annotations[kDataPaths];
  if (annotations.value(kDataPathsDigest, "") != sha256(paths).str()) {
    return fail(Errc::integrity, "the data paths of an index entry were changed", context);
  }
  auto parsed = parse_json(paths, context);
  if (!parsed) return fail(Errc::integrity, parsed.error().message, context);
  parsed->get_to(entry.data_paths);
  return entry;
}

}  // namespace

const IndexEntry* Index::find(const Digest& digest) const {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const IndexEntry& entry) {
    return entry.manifest.digest == digest;
  });
  return found == entries.end() ? nullptr : &*found;
}

std::string ref_name_for(const std::string& name, const Digest& digest) {
  return name + "-" + digest.brief();
}

Result<Index> read_index(const BlobStore& store) {
  const std::filesystem::path path = store.root() / "index.json";
  auto text = read_file(path);
  if (!text && text.error().code == Errc::not_found) {
    return fail(Errc::integrity, "the store has lost its index", path.string(),
                "restore it from a copy, or import exports of its bundles into a new store");
  }
  if (!text) return tl::unexpected(text.error());
  auto json = parse_json(*text, path.string());
  if (!json) return fail(Errc::integrity, json.error().message, path.string());
  Index index;
  try {
    if (json->at("schemaVersion") != 2) {
      return fail(Errc::integrity, "not an OCI index of schema version 2", path.string());
    }
    for (const Json& item : json->at("manifests")) {
      auto entry = read_entry(item, path.string());
      if (!entry) return tl::unexpected(entry.error());
      index.entries.push_back(std::move(*entry));
    }
  } catch (const Json::exception& error) {
    return fail(Errc::integrity, std::string("not an OCI index: ") + error.what(), path.string());
  }
  // Other tools (skopeo) write their own form, with nothing in it that is ours.
  const bool ours = text->find("io.qualify") != std::string::npos ||
                    text->find("artifactType") != std::string::npos;
  index.foreign = !ours && !index.entries.empty();
  if (ours && index_bytes(index) != *text) {
    return fail(Errc::integrity, "the index is not in the form in which it was written",
                path.string());
  }
  return index;
}

std::string index_bytes(const Index& index) {
  return canonical_bytes(index_json(index));
}

namespace {

/// Reads, changes and replaces the index under its lock.
Result<void> change_index(const BlobStore& store, const std::function<void(Index&)>& change) {
  const auto lock = FileLock::acquire(store.root() / kIndexLock, true);
  if (!lock) return tl::unexpected(lock.error());
  auto index = read_index(store);
  if (!index) return tl::unexpected(index.error());
  const std::string before = index_bytes(*index);
  if (index->foreign) {
    // From here on the index is ours, and so are the names in it.
    for (IndexEntry& entry : index->entries) {
      auto loaded = load_checked(store, entry.manifest.digest);
      if (!loaded) return tl::unexpected(loaded.error());
      entry.ref_name = ref_name_for(loaded->bundle.name, entry.manifest.digest);
    }
  }
  change(*index);
  const std::string after = index_bytes(*index);
  if (after == before) return {};
  // Blobs that another process had renamed into place, and not yet synced, are named too.
  if (auto done = sync_folder(store.root() / "blobs" / "sha256"); !done) return done;
  return write_file_atomic(store.root() / "index.json", after);
}

}  // namespace

Result<void> add_to_index(const BlobStore& store, const IndexEntry& entry) {
  return change_index(store, [&](Index& index) {
    std::erase_if(index.entries, [&](const IndexEntry& known) {
      return known.manifest.digest == entry.manifest.digest;
    });
    index.entries.push_back(entry);
  });
}

Result<void> remove_from_index(const BlobStore& store, const Digest& digest) {
  return change_index(store, [&](Index& index) {
    std::erase_if(index.entries,
                  [&](const IndexEntry& known) { return known.manifest.digest == digest; });
  });
}

}  // namespace qualify::store
