#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "qualify/base/digest.hpp"
#include "qualify/base/error.hpp"

namespace qualify {

namespace fs = std::filesystem;

/// An owned file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd();
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept;
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

/// Opens for reading, close-on-exec. Errors: not_found, io.
[[nodiscard]] Result<Fd> open_read(const fs::path& path);

/// Whole file; refuses more than `limit` bytes. Errors: not_found, io, invalid_input (too large).
[[nodiscard]] Result<std::string> read_file(const fs::path& path,
                                            std::uint64_t limit = 64ULL << 20U);

/// Hands the file to `sink` in pieces of at most 1 MiB, in order. Errors: not_found, io, the
/// sink's.
using Sink = std::function<Result<void>(std::span<const std::byte>)>;
[[nodiscard]] Result<std::uint64_t> read_stream(const fs::path& path, const Sink& sink);

struct HashedFile {
  Digest digest;
  std::uint64_t size = 0;  ///< bytes
};
/// `watch` sees the bytes as well; its error ends the reading.
[[nodiscard]] Result<HashedFile> hash_file(const fs::path& path, const Sink& watch = {});

/// All bytes or an error. Errors: io, no_space.
[[nodiscard]] Result<void> write_all(int fd, std::span<const std::byte> data,
                                     const fs::path& path_for_errors);

/// Replaces `path` atomically and durably: temporary file in the same folder (O_EXCL), fsync, chmod
/// `mode`, rename, fsync of the folder. On error the old file stands and the temporary one is gone.
/// Errors: io, no_space, not_found (the folder).
[[nodiscard]] Result<void> write_file_atomic(const fs::path& path, std::string_view content,
                                             unsigned mode = 0644);

/// Makes a rename or creation in `folder` durable.
[[nodiscard]] Result<void> sync_folder(const fs::path& folder);

/// create_directories as a Result.
[[nodiscard]] Result<void> make_folders(const fs::path& folder);

/// An exclusive advisory lock (flock) on a file that is created if missing, and may be another
/// user's; released when destroyed.
class FileLock {
 public:
  /// Errors: busy when another holds it and `wait` is false; io.
  [[nodiscard]] static Result<FileLock> acquire(const fs::path& path, bool wait);
  /// Without waiting. Errors: `held`, in the words of who asks, when another holds it; io.
  [[nodiscard]] static Result<FileLock> acquire_or(const fs::path& path, Error held);
  /// Shared with other shared holders; waits for an exclusive one to go. Errors: io.
  [[nodiscard]] static Result<FileLock> acquire_shared(const fs::path& path);
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  static Result<FileLock> lock(const fs::path& path, int operation);
  explicit FileLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace qualify
