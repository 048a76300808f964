#pragma once

#include <string>
#include <vector>

#include "qualify/store/blob_store.hpp"

namespace qualify::store {

struct IndexEntry {
  Descriptor manifest;
  std::string name;
};

/// In the order of sealing. Errors: integrity, io.
[[nodiscard]] Result<std::vector<IndexEntry>> read_index(const BlobStore& store);

/// Puts a manifest at the end (moves it there when it is in it), under a lock.
[[nodiscard]] Result<void> add_to_index(const BlobStore& store, const Descriptor& manifest,
                                        const std::string& name);

}  // namespace qualify::store
