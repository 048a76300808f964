#pragma once

#include <map>
#include <string>
#include <vector>

#include "qualify/store/bundle.hpp"

/// index.json of a store: which bundles it holds, oldest seal first. Internal to this module.
namespace qualify::store {

struct IndexEntry {
  Descriptor manifest;
  std::string ref_name;                           ///< "<name>-<12 hex>", for skopeo and registries
  std::map<std::string, std::string> data_paths;  ///< data name -> path on the sealing machine
};

struct Index {
  std::vector<IndexEntry> entries;
  [[nodiscard]] const IndexEntry* find(const Digest& digest) const;
};

/// Errors: not_found, integrity.
[[nodiscard]] Result<Index> read_index(const BlobStore& store);

/// Names the bundle in the index as its newest entry, under the store's lock. Errors: io, no_space,
/// integrity.
[[nodiscard]] Result<void> add_to_index(const BlobStore& store, const IndexEntry& entry);

[[nodiscard]] std::string ref_name_for(const std::string& name, const Digest& digest);

}  // namespace qualify::store
