#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <vector>

#include "qualify/base/clock.hpp"
#include "qualify/store/bundle.hpp"

namespace qualify::store {

struct CollectOptions {
  /// Only what has not been touched for this long may go.
  Duration grace = std::chrono::hours(24);
  /// Bundles to take out of the index first. Errors: refused when one is in `keep`.
  std::vector<Digest> drop{};
  /// Digests that a journal, grant or certificate names: these bundles, and these blobs, stay.
  std::set<Digest> keep{};
  /// Without it nothing is changed.
  bool remove = false;
};

struct Garbage {
  std::vector<std::filesystem::path> files;  ///< blobs that nothing names, and abandoned writes
  std::uint64_t bytes = 0;
};

/// What nothing reaches any more; removed when asked for. Waits for seals and imports that are
/// going on, and they wait for it: a blob that a seal is about to name is never taken. A bundle
/// that cannot be read stops the collection, as what it names is not known. Errors: refused, busy
/// (a seal is going on; only with `remove`), integrity, io.
[[nodiscard]] Result<Garbage> collect_garbage(BlobStore& store, const CollectOptions& options,
                                              const Clock& clock);

}  // namespace qualify::store
