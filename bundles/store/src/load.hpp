#pragma once

#include <functional>
#include <string>

#include "qualify/store/bundle.hpp"

/// Reading a bundle from wherever its blobs lie. Internal to this module.
namespace qualify::store {

inline constexpr std::uint64_t kLargestManifest = 4U << 20U;  ///< bytes; configs too

/// Returns a blob's bytes, checked against its digest.
using ReadBlob = std::function<Result<std::string>(const Digest&)>;

struct Loaded {
  Bundle bundle;
  Descriptor config;
  std::uint64_t manifest_size = 0;
};

/// Manifest and config, checked against their digests and each other. Errors: the reader's,
/// integrity, unsupported.
[[nodiscard]] Result<Loaded> load_checked(const Digest& digest, const ReadBlob& read,
                                          const std::string& context);
[[nodiscard]] Result<Loaded> load_checked(const BlobStore& store, const Digest& digest);

}  // namespace qualify::store
