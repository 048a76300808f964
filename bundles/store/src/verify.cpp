#include <optional>
#include <set>

#include "config_json.hpp"
#include "index.hpp"
#include "load.hpp"
#include "parallel.hpp"

namespace qualify::store {

namespace {

Error at(const char* hop, Error error) {
  error.message = std::string(hop) + ": " + error.message;
  return error;
}

std::optional<Error> fault_of(const BlobStore& store, const Descriptor& blob) {
  const auto size = store.stream(blob.digest, {});
  if (!size) {
    Error error = at("blob", size.error());
    if (!blob.title.empty()) error.message += " (" + blob.title + ")";
    return error;
  }
  if (*size == blob.size) return std::nullopt;
  return Error{Errc::integrity,
               "blob: it has another size than the manifest says",
               store.path_of(blob.digest).string(),
               "",
               {}};
}

}  // namespace

std::vector<Error> verify(const BlobStore& store, const Digest& digest, unsigned jobs) {
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
  const auto loaded = load_checked(store, digest);
  if (!loaded) {
    faults.push_back(loaded.error());
    return faults;
  }
  const Bundle& bundle = loaded->bundle;
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
    const std::string expected = ref_name_for(bundle.name, digest);
    if (!index->foreign && entry->ref_name != expected) {
      faults.push_back(
          {Errc::integrity,
           "index: it calls the bundle '" + entry->ref_name + "', expected '" + expected + "'",
           (store.root() / "index.json").string(),
           "",
           {}});
    }
  }
  std::vector<Descriptor> blobs;
  std::set<Digest> seen;
  for (const Descriptor& layer : layers_of(bundle)) {
    if (seen.insert(layer.digest).second) blobs.push_back(layer);
  }
  std::vector<std::optional<Error>> found(blobs.size());
  for_each_index(blobs.size(), jobs, [&](std::size_t i) { found[i] = fault_of(store, blobs[i]); });
  for (std::optional<Error>& fault : found) {
    if (fault) faults.push_back(std::move(*fault));
  }
  return faults;
}

}  // namespace qualify::store
