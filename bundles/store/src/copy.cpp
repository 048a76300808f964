#include "copy.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace qualify::store {

namespace {

constexpr std::size_t kPiece = 512U << 10U;
constexpr std::size_t kPieces = 4;
constexpr off_t kSmall = 1 << 20;           ///< bytes; below, a thread costs more than it saves
constexpr std::uint64_t kFlush = 32 << 20;  ///< bytes between nudges to the disk

/// A ring of buffers between one reader and one hasher.
class Ring {
 public:
  /// A free buffer; waits for the hasher.
  std::byte* free_buffer() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return filled_ - hashed_ < kPieces; });
    return buffer(filled_);
  }
  /// The buffer last given out holds `size` bytes; 0 = the end.
  void filled(std::size_t size) {
    const std::lock_guard lock(mutex_);
    sizes_[filled_ % kPieces] = size;
    ++filled_;
    changed_.notify_one();
  }
  void hash_all(Sha256& hash) {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return hashed_ < filled_; });
      const std::size_t size = sizes_[hashed_ % kPieces];
      std::byte* const data = buffer(hashed_);
      lock.unlock();
      if (size == 0) return;
      hash.update(std::span(data, size));
      lock.lock();
      ++hashed_;
      changed_.notify_one();
    }
  }

 private:
  std::byte* buffer(std::uint64_t index) {
    auto& slot = buffers_[index % kPieces];
    if (!slot) slot = std::make_unique_for_overwrite<std::byte[]>(kPiece);
    return slot.get();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<std::unique_ptr<std::byte[]>, kPieces> buffers_;
  std::array<std::size_t, kPieces> sizes_{};
  std::uint64_t filled_ = 0;
  std::uint64_t hashed_ = 0;
};

Result<std::size_t> read_piece(int from, std::span<std::byte> into,
                               const std::filesystem::path& name) {
  for (;;) {
    const ssize_t count = ::read(from, into.data(), into.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno(errno, "cannot read", name.string());
    return static_cast<std::size_t>(count);
  }
}

Result<HashedFile> hash_small(int from, std::size_t expected, const std::filesystem::path& name,
                              const Sink& sink) {
  const std::size_t capacity = expected + 1;  // all of it and its end in one read
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(capacity);
  Sha256 hash;
  std::uint64_t size = 0;
  for (;;) {
    const auto count = read_piece(from, std::span(buffer.get(), capacity), name);
    if (!count) return tl::unexpected(count.error());
    if (*count == 0) return HashedFile{hash.finish(), size};
    const std::span<const std::byte> piece(buffer.get(), *count);
    hash.update(piece);
    size += *count;
    if (!sink) continue;
    if (auto done = sink(piece); !done) return tl::unexpected(done.error());
  }
}

/// The next piece into the ring, and from there to `sink`. Returns its size; 0 at the end.
Result<std::size_t> fill(Ring& ring, int from, const std::filesystem::path& name,
                         const Sink& sink) {
  std::byte* const buffer = ring.free_buffer();
  auto count = read_piece(from, std::span(buffer, kPiece), name);
  if (!count || *count == 0) return count;
  // Hashing starts before the sink's work, so that they overlap; both only read the buffer, and it
  // is given out again only after free_buffer() is called again.
  ring.filled(*count);
  if (!sink) return count;
  if (auto done = sink(std::span(buffer, *count)); !done) return tl::unexpected(done.error());
  return count;
}

}  // namespace

Result<HashedFile> hash_stream(int from, const std::filesystem::path& name, const Sink& sink) {
  struct stat status {};
  if (::fstat(from, &status) != 0) return fail_errno(errno, "cannot stat", name.string());
  if (status.st_size < kSmall) {
    return hash_small(from, static_cast<std::size_t>(status.st_size), name, sink);
  }
  ::posix_fadvise(from, 0, 0, POSIX_FADV_SEQUENTIAL);
  Ring ring;
  Sha256 hash;
  std::uint64_t size = 0;
  Result<std::size_t> count = 0;
  {
    std::jthread hasher;
    try {
      hasher = std::jthread([&] { ring.hash_all(hash); });
    } catch (const std::system_error&) {  // no more threads for this user
      return hash_small(from, kPiece, name, sink);
    }
    for (;;) {
      count = fill(ring, from, name, sink);
      if (!count || *count == 0) break;
      size += *count;
    }
    static_cast<void>(ring.free_buffer());
    ring.filled(0);
  }
  if (!count) return tl::unexpected(count.error());
  return HashedFile{hash.finish(), size};
}

Result<HashedFile> copy_and_hash(int from, int to, const std::filesystem::path& name) {
  // What is hashed is the clone: the source may change, the clone cannot.
  if (::ioctl(to, FICLONE, from) == 0) return hash_stream(to, name);
  struct stat status {};
  if (::fstat(from, &status) != 0) return fail_errno(errno, "cannot stat", name.string());
  if (status.st_size >= kSmall && ::fallocate(to, FALLOC_FL_KEEP_SIZE, 0, status.st_size) != 0 &&
      (errno == ENOSPC || errno == EDQUOT)) {
    return fail_errno(errno,
                      "no room in the store for its " + std::to_string(status.st_size) + " bytes",
                      name.string());
  }
  std::uint64_t written = 0;
  return hash_stream(from, name, [&](std::span<const std::byte> piece) -> Result<void> {
    if (auto done = write_all(to, piece, name); !done) {
      done.error().message = "its copy in the store: " + done.error().message;
      return done;
    }
    written += piece.size();
    // The disk works while the rest is read; the fsync at the end then waits for the rest only.
    if (written % kFlush < piece.size()) ::sync_file_range(to, 0, 0, SYNC_FILE_RANGE_WRITE);
    return {};
  });
}

}  // namespace qualify::store
