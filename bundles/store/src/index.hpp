#pragma once

#include <map>
#include <string>
#include <vector>

#include "qualify/store/bundle.hpp"

/// index.json of a store: which bundles it holds, oldest seal first. Internal to this module.
namespace qualify::store {

inline constexpr char kLayoutBytes[] = R"({"imageLayoutVersion":"1.0.0"})";
/// Held shared by whatever adds blobs, exclusively by what removes them.
inline constexpr char kCollectLock[] = "collect.lock";
inline constexpr char kIndexLock[] = "index.lock";
/// stat_cache.hpp; no part of any bundle.
inline constexpr char kSealCache[] = "seal-cache";
inline constexpr char kTemporaryPrefix[] = ".tmp-";

struct IndexEntry {
  Descriptor manifest;
  std::string ref_name;                           ///< "<name>-<12 hex>", for skopeo and registries
  std::map<std::string, std::string> data_paths;  ///< data name -> path on the sealing machine
};

struct Index {
  std::vector<IndexEntry> entries;
  bool foreign = false;  ///< written by another tool (skopeo): its names for bundles are its own
  [[nodiscard]] const IndexEntry* find(const Digest& digest) const;
};

/// Errors: not_found, integrity.
[[nodiscard]] Result<Index> read_index(const BlobStore& store);

/// Names the bundle in the index as its newest entry, under the store's lock. Errors: io, no_space,
/// integrity.
[[nodiscard]] Result<void> add_to_index(const BlobStore& store, const IndexEntry& entry);

/// Errors: as above; a bundle that is not there is none.
[[nodiscard]] Result<void> remove_from_index(const BlobStore& store, const Digest& digest);

/// The one form of index.json.
[[nodiscard]] std::string index_bytes(const Index& index);

[[nodiscard]] std::string ref_name_for(const std::string& name, const Digest& digest);

}  // namespace qualify::store
