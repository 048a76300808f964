#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "qualify/base/digest.hpp"
#include "qualify/base/error.hpp"

/// Content-addressed storage: an OCI image layout (image-spec 1.1) on disk.
namespace qualify::store {

/// What names a blob (OCI descriptor).
struct Descriptor {
  std::string media_type;
  Digest digest;
  std::uint64_t size = 0;  ///< bytes
  std::string title;       ///< org.opencontainers.image.title; may be empty
  bool operator==(const Descriptor&) const = default;
};

/// Blobs below `<root>/blobs/sha256`. Adding is crash-safe (temporary file with O_EXCL, fsync,
/// 0444, rename, fsync of the folder) and idempotent; an existing blob is re-hashed, not trusted.
/// Thread-safe; several processes may add at once.
class BlobStore {
 public:
  /// Makes the layout if it is not there. Errors: io, no_space, integrity (not an OCI layout).
  [[nodiscard]] static Result<BlobStore> open(const std::filesystem::path& root);
  /// Never writes. Errors: not_found, integrity.
  [[nodiscard]] static Result<BlobStore> open_read_only(const std::filesystem::path& root);

  [[nodiscard]] Result<Descriptor> add_bytes(std::string_view content,
                                             const std::string& media_type);
  /// Copies and hashes in one pass; a file that changes while it is read is an error.
  /// Errors: not_found, io, no_space, integrity.
  [[nodiscard]] Result<Descriptor> add_file(const std::filesystem::path& file,
                                            const std::string& media_type);
  /// Errors: not_found, integrity (bytes do not have the digest), invalid_input (over limit).
  [[nodiscard]] Result<std::string> read(const Digest& digest,
                                         std::uint64_t limit = 64ULL << 20U) const;
  [[nodiscard]] std::filesystem::path path_of(const Digest& digest) const;
  [[nodiscard]] bool has(const Digest& digest) const;
  /// Re-hashes one blob. Errors: not_found, integrity, io.
  [[nodiscard]] Result<void> verify(const Digest& digest) const;

  [[nodiscard]] const std::filesystem::path& root() const { return root_; }

 private:
  explicit BlobStore(std::filesystem::path root) : root_(std::move(root)) {}
  std::filesystem::path root_;
};

}  // namespace qualify::store
