#include "copy.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

namespace qualify::store {

namespace {

constexpr std::size_t kPiece = 256U << 10U;
constexpr std::size_t kPieces = 8;
constexpr off_t kSmall = 1 << 20;           ///< bytes; below, a thread costs more than it saves
constexpr std::uint64_t kFlush = 32 << 20;  ///< bytes between nudges to the disk

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

/// Moves the calling thread if it runs on this processor and may run on another one; it may come
/// back later.
void keep_off(int processor) {
  if (processor < 0 || processor != ::sched_getcpu()) return;
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(processor, &others);
  if (::sched_setaffinity(0, sizeof(others), &others) != 0) return;  // none, or too many for a set
  ::sched_setaffinity(0, sizeof(allowed), &allowed);
}

/// A file in pieces for two that both take all of them, in order, on a thread each: one hashes, the
/// other hands them on. Whoever first comes to a piece reads it: the other finds it read while
/// there are processors for both, and none waits for the other to get one.
///
/// All of it takes as long as the hashing, so that nothing of it may stop the hasher. The kernel
/// would run a sender that it wakes on its processor: the sender naps instead, and goes elsewhere
/// where it finds itself there.
class Pieces {
 public:
  Pieces(int from, const std::filesystem::path& name) : from_(from), name_(name) {}

  // The taker's next piece, good until it asks again. Empty at the end, after stop(), and after an
  // error.

  std::span<const std::byte> next_to_hash() {
    hasher_processor_ = ::sched_getcpu();
    std::unique_lock lock(mutex_);
    give_back(hasher);
    hasher_waits_ = true;
    changed_.wait(lock, [&] { return can_go(hasher); });
    hasher_waits_ = false;
    return take(hasher, lock);
  }
  std::span<const std::byte> next_to_send() {
    keep_off(hasher_processor_);
    std::unique_lock lock(mutex_);
    give_back(sender);
    if (hasher_waits_ && can_go(hasher)) changed_.notify_one();
    while (!can_go(sender)) {
      lock.unlock();
      std::this_thread::sleep_for(kNap);
      lock.lock();
    }
    return take(sender, lock);
  }
  /// The sender's: no more pieces for either.
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_one();
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  /// A part of the time in which the pieces that the sender is ahead are hashed.
  static constexpr std::chrono::microseconds kNap{250};

  enum Taker : std::size_t { hasher, sender };

  void give_back(Taker taker) { done_[taker] = taken_[taker]; }
  /// Never both wait: whoever has taken all that is read may read on.
  [[nodiscard]] bool can_go(Taker taker) const {
    const std::uint64_t index = taken_[taker];
    return stopped_ || index < read_ ||
           (!reading_ && index < std::min(done_[hasher], done_[sender]) + kPieces);
  }
  /// Once it can go.
  std::span<const std::byte> take(Taker taker, std::unique_lock<std::mutex>& lock) {
    const std::uint64_t index = taken_[taker];
    if (index == read_ && !stopped_) {
      reading_ = true;
      lock.unlock();
      auto size = read_piece(from_, std::span(buffer(index), kPiece), name_);
      lock.lock();
      reading_ = false;
      if (!size) error_ = size.error();
      sizes_[index % kPieces] = size.value_or(0);
      ++read_;
      if (hasher_waits_) changed_.notify_one();
    }
    if (stopped_) return {};
    taken_[taker] = index + 1;
    return {buffer(index), sizes_[index % kPieces]};
  }
  std::byte* buffer(std::uint64_t index) {
    auto& slot = buffers_[index % kPieces];
    if (!slot) slot = std::make_unique_for_overwrite<std::byte[]>(kPiece);
    return slot.get();
  }
  const int from_;
  const std::filesystem::path& name_;
  std::atomic<int> hasher_processor_{-1};  ///< where it last asked
  std::mutex mutex_;
  std::condition_variable changed_;  ///< for the hasher
  std::array<std::unique_ptr<std::byte[]>, kPieces> buffers_;
  std::array<std::size_t, kPieces> sizes_{};
  std::array<std::uint64_t, 2> taken_{};  ///< pieces given out to each
  std::array<std::uint64_t, 2> done_{};   ///< of these, those that it is done with
  std::uint64_t read_ = 0;
  bool reading_ = false;
  bool hasher_waits_ = false;
  bool stopped_ = false;
  std::optional<Error> error_;
};

/// Stops the pieces where the sender leaves before their end.
class StopAtExit {
 public:
  explicit StopAtExit(Pieces& pieces) : pieces_(&pieces) {}
  StopAtExit(const StopAtExit&) = delete;
  StopAtExit& operator=(const StopAtExit&) = delete;
  ~StopAtExit() {
    if (pieces_ != nullptr) pieces_->stop();
  }
  void not_needed() { pieces_ = nullptr; }

 private:
  Pieces* pieces_;
};

/// What another processor has read lies in its cache, from where it comes too slowly for SHA-256
/// when it is first asked for as it is needed. Sixteen lines at a time are what a core can have
/// under way: asked for more, it stands still.
void hash_fetching_ahead(Sha256& hash, std::span<const std::byte> piece) {
  constexpr std::size_t kStep = 1024;
  constexpr std::size_t kAhead = 4096;
  constexpr std::size_t kLine = 64;
  for (std::size_t at = 0; at < piece.size(); at += kStep) {
    const std::size_t end = std::min(at + kAhead + kStep, piece.size());
    for (std::size_t i = at + kAhead; i < end; i += kLine) {
      __builtin_prefetch(&piece[i], 0, 2);
    }
    hash.update(piece.subspan(at, std::min(kStep, piece.size() - at)));
  }
}

}  // namespace

Result<HashedFile> hash_stream(int from, const std::filesystem::path& name, const Sink& sink) {
  struct stat status {};
  if (::fstat(from, &status) != 0) return fail_errno(errno, "cannot stat", name.string());
  if (status.st_size < kSmall) {
    return hash_small(from, static_cast<std::size_t>(status.st_size), name, sink);
  }
  ::posix_fadvise(from, 0, 0, POSIX_FADV_SEQUENTIAL);
  Pieces pieces(from, name);
  Sha256 hash;
  std::uint64_t size = 0;
  Result<void> sent;
  {
    std::jthread hashing;
    StopAtExit stop(pieces);  // before `hashing` is waited for, whatever the sink throws
    try {
      hashing = std::jthread([&] {
        for (;;) {
          const auto piece = pieces.next_to_hash();
          if (piece.empty()) return;
          hash_fetching_ahead(hash, piece);
        }
      });
    } catch (const std::system_error&) {  // no more threads for this user
      return hash_small(from, kPiece, name, sink);
    }
    for (;;) {
      const auto piece = pieces.next_to_send();
      if (piece.empty()) break;
      size += piece.size();
      if (!sink) continue;
      sent = sink(piece);
      if (!sent) break;
    }
    if (sent) stop.not_needed();
  }
  if (!sent) return tl::unexpected(sent.error());
  if (pieces.error()) return Unexpected(*pieces.error());
  return HashedFile{hash.finish(), size};
}

Result<HashedFile> copy_and_hash(int from, int to, const std::filesystem::path& name,
                                 const Sink& sink) {
  // What is hashed is the clone: the source may change, the clone cannot.
  if (::ioctl(to, FICLONE, from) == 0) return hash_stream(to, name, sink);
  struct stat status {};
  if (::fstat(from, &status) != 0) return fail_errno(errno, "cannot stat", name.string());
  // Asked, not set aside: on a tmpfs fallocate would take a third of the copy's time before the
  // first byte is hashed, and other file systems place a file that is written in one go well
  // without it.
  struct statvfs room {};
  if (::fstatvfs(to, &room) == 0 && room.f_blocks > 0 &&
      room.f_bavail < static_cast<std::uint64_t>(status.st_size) / room.f_frsize) {
    return fail_errno(ENOSPC,
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
    return sink ? sink(piece) : Result<void>();
  });
}

}  // namespace qualify::store
