#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qualify/base/digest.hpp"
#include "qualify/base/error.hpp"
#include "qualify/base/files.hpp"

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

/// A file's descriptor once it is in the store; bytes come in pieces and are hashed on the way.
/// Nothing is visible before commit(); destroyed without it, nothing is left. Not thread-safe.
class BlobWriter {
 public:
  BlobWriter(BlobWriter&& other) noexcept;
  BlobWriter& operator=(BlobWriter&&) = delete;
  ~BlobWriter();
  /// Errors: io, no_space.
  [[nodiscard]] Result<void> write(std::span<const std::byte> data);
  /// Takes in all of an open file, hashing on a second thread and sharing its blocks where the file
  /// system can; instead of write(). `sink`, if there is one, gets the same pieces, in order.
  /// `name` is for errors. Errors: io, no_space, the sink's.
  [[nodiscard]] Result<void> copy_from(int fd, const std::filesystem::path& name,
                                       const Sink& sink = {});
  [[nodiscard]] std::uint64_t size() const { return size_; }  ///< bytes so far
  /// Makes the blob durable and visible. Errors: io, no_space, integrity (a blob of this name is
  /// there with other bytes).
  [[nodiscard]] Result<Descriptor> commit(const std::string& media_type);

 private:
  friend class BlobStore;
  BlobWriter(std::filesystem::path folder, std::filesystem::path temporary, Fd fd)
      : folder_(std::move(folder)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}
  [[nodiscard]] Result<void> flush();
  std::filesystem::path folder_;
  std::filesystem::path temporary_;
  Fd fd_;
  std::vector<std::byte> buffer_;  ///< an archive comes in many small pieces
  Sha256 hash_;
  std::optional<Digest> digest_;  ///< when copy_from() made it
  std::uint64_t size_ = 0;
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

  /// Errors: io, no_space.
  [[nodiscard]] Result<BlobWriter> begin() const;
  [[nodiscard]] Result<Descriptor> add_bytes(std::string_view content,
                                             const std::string& media_type);
  /// Copies and hashes in one pass; a file that changes while it is read is an error.
  /// `sink`, if there is one, gets the same pieces, in order.
  /// Errors: not_found, io, no_space, integrity, the sink's.
  [[nodiscard]] Result<Descriptor> add_file(const std::filesystem::path& file,
                                            const std::string& media_type, const Sink& sink = {});
  /// Errors: not_found, integrity (bytes do not have the digest), invalid_input (over limit).
  [[nodiscard]] Result<std::string> read(const Digest& digest,
                                         std::uint64_t limit = 64ULL << 20U) const;
  /// Hands the blob to `sink`, if there is one, in pieces. The digest is known only at the end:
  /// what was done with the pieces counts only when this succeeds. A symbolic link or anything but
  /// a plain file in the blob's place is an integrity fault. Errors: not_found, integrity, io, the
  /// sink's.
  [[nodiscard]] Result<std::uint64_t> stream(const Digest& digest, const Sink& sink) const;
  [[nodiscard]] std::filesystem::path path_of(const Digest& digest) const;
  [[nodiscard]] bool has(const Digest& digest) const;
  /// Re-hashes one blob. Errors: not_found, integrity, io.
  [[nodiscard]] Result<void> verify(const Digest& digest) const;

  /// Renews the blob's time, so that garbage collection leaves it alone for its grace period.
  void touch(const Digest& digest) const;

  [[nodiscard]] const std::filesystem::path& root() const { return root_; }

 private:
  explicit BlobStore(std::filesystem::path root) : root_(std::move(root)) {}
  std::filesystem::path root_;
};

}  // namespace qualify::store
