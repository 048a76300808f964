#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "qualify/store/blob_store.hpp"

/// Internal to this module.
namespace qualify::store {

/// What an input was when it was last read, so that an unchanged one is not read again at seal.
/// Only ever a short cut: losing the file costs time, and verification never looks at it.
///
/// A file counts as unchanged while device, inode, size, mtime and ctime are the same, and the blob
/// that came of it is, by the same five, the one that was written then. A file that changed less
/// than `settle` before the seal began is not remembered: a later change could leave the same times
/// (git's "racily clean" entries). Times are the file system's, taken from the store's lock file.
///
/// Thread-safe.
class StatCache {
 public:
  struct Content {
    Digest digest;
    std::uint64_t size = 0;  ///< bytes
    Digest note{};           ///< what else was learnt of it
  };
  /// How some files stood at one moment: a digest over names and the five of each.
  class Stamp {
   public:
    [[nodiscard]] static Stamp of(const std::vector<std::filesystem::path>& files);
    [[nodiscard]] bool valid() const { return valid_; }  ///< all are there, and plain files
    bool operator==(const Stamp& other) const { return valid_ && digest_ == other.digest_; }

   private:
    friend class StatCache;
    bool valid_ = false;
    Digest digest_;
    std::chrono::nanoseconds newest_{};  ///< ctime, since the epoch
  };

  /// A cache that is missing, damaged or of another version is empty. `began`: the file system's
  /// time at the begin of the seal.
  StatCache(const BlobStore& store, struct timespec began, std::chrono::nanoseconds settle);

  /// What `path`, read as `purpose`, was while its files stood as now; with `stored`, only when the
  /// store has it still, as it was written.
  [[nodiscard]] std::optional<Content> find(const std::string& purpose,
                                            const std::filesystem::path& path, const Stamp& now,
                                            bool stored);
  /// `before` is how the files stood before they were read.
  void remember(const std::string& purpose, const std::filesystem::path& path, const Stamp& before,
                const Content& content, bool stored);
  /// The archive of a git tree (git::Tree::key()).
  [[nodiscard]] std::optional<Content> find_tree(const Digest& key);
  void remember_tree(const Digest& key, const Content& content);

  /// Errors: io, no_space; callers may ignore them.
  [[nodiscard]] Result<void> save();

 private:
  struct Entry {
    Digest stamp;  ///< of the input; zero for trees
    Content content;
    Digest blob;  ///< stamp of the blob; zero when content is not stored
    bool used = false;
  };
  [[nodiscard]] std::optional<Content> find(const Digest& key, const Digest& stamp, bool stored);
  void remember(const Digest& key, Entry entry);
  void load();

  const BlobStore& store_;
  std::filesystem::path file_;
  std::chrono::nanoseconds began_;
  std::chrono::nanoseconds settle_;
  std::mutex mutex_;
  std::map<Digest, Entry> entries_;
  bool changed_ = false;
};

/// Device, inode, size, mtime and ctime are equal.
[[nodiscard]] bool is_same(const struct stat& a, const struct stat& b);

}  // namespace qualify::store
