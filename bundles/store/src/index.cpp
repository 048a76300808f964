#include "index.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bundle_json.hpp"
#include "layout.hpp"
#include "qualify/base/files.hpp"

namespace qualify::store {

Result<std::vector<IndexEntry>> read_index(const BlobStore& store) {
  const fs::path file = store.root() / kIndexFile;
  const auto text = read_file(file);
  if (!text) return tl::unexpected(text.error());
  const auto json = parse_json(*text, file.string());
  if (!json) return fail(Errc::integrity, json.error().message, file.string());
  try {
    std::vector<IndexEntry> entries;
    for (const Json& entry : json->at("manifests")) {
      entries.push_back({descriptor_from(entry), entry.at("annotations").at(kRefName)});
      entries.back().manifest.title.clear();
    }
    return entries;
  } catch (const std::exception& error) {
    return fail(Errc::integrity, std::string("the index is damaged: ") + error.what(),
                file.string());
  }
}

Result<void> add_to_index(const BlobStore& store, const Descriptor& manifest,
                          const std::string& name) {
  const auto lock = FileLock::acquire(store.root() / ".index.lock", true);
  if (!lock) return tl::unexpected(lock.error());
  auto entries = read_index(store);
  if (!entries) return tl::unexpected(entries.error());
  std::erase_if(*entries, [&](const IndexEntry& entry) {
    return entry.manifest.digest == manifest.digest && entry.name == name;
  });
  entries->push_back({manifest, name});
  Json list = Json::array();
  for (const IndexEntry& entry : *entries) {
    Json json = descriptor_json(entry.manifest);
    json["artifactType"] = kArtifactType;
    json["annotations"] = {{kRefName, entry.name}};
    list.push_back(std::move(json));
  }
  const Json index = {{"schemaVersion", 2},
                      {"mediaType", "application/vnd.oci.image.index.v1+json"},
                      {"manifests", std::move(list)}};
  return write_file_atomic(store.root() / kIndexFile, canonical_bytes(index));
}

}  // namespace qualify::store
