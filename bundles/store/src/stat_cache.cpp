#include "stat_cache.hpp"

#include <algorithm>
#include <array>

#include "index.hpp"
#include "qualify/base/files.hpp"
#include "qualify/base/version.hpp"

namespace qualify::store {

namespace {

/// About 200 bytes each in memory.
constexpr std::size_t kMostEntries = 100'000;

// The file: a line that names its form and the qualify that wrote it, then of each entry key,
// stamp, content, size (8 bytes, little-endian), note and blob, then the SHA-256 of all before.
constexpr std::size_t kRecord = 5 * Digest::kBytes + 8;

/// What was accepted by another qualify is looked at again: it may look for more.
std::string head() {
  return std::string("qualify seal cache 1, ") + version() + "\n";
}

void put(std::string& bytes, const Digest& digest) {
  bytes.append(reinterpret_cast<const char*>(digest.bytes().data()), Digest::kBytes);
}

Digest take(std::string_view& bytes) {
  Digest::Bytes value{};
  std::copy_n(bytes.begin(), value.size(), value.begin());
  bytes.remove_prefix(value.size());
  return Digest(value);
}

std::string five(const struct stat& status) {
  const auto time = [](const struct timespec& at) {
    return std::to_string(at.tv_sec) + "." + std::to_string(at.tv_nsec);
  };
  return std::to_string(status.st_dev) + " " + std::to_string(status.st_ino) + " " +
         std::to_string(status.st_size) + " " + time(status.st_mtim) + " " + time(status.st_ctim);
}

/// Zero when the blob is not there.
Digest stamp_of_blob(const BlobStore& store, const Digest& digest) {
  struct stat status {};
  if (::lstat(store.path_of(digest).c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return sha256(five(status));
}

std::chrono::nanoseconds since_epoch(const struct timespec& at) {
  return std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec);
}

Digest key_of(const std::string& purpose, const std::filesystem::path& path) {
  return sha256(purpose + " " + path.string());
}

Digest key_of_tree(const Digest& key) {
  return sha256("tree " + key.hex());
}

}  // namespace

bool is_same(const struct stat& a, const struct stat& b) {
  return five(a) == five(b);
}

StatCache::Stamp StatCache::Stamp::of(const std::vector<std::filesystem::path>& files) {
  Stamp stamp;
  Sha256 hash;
  for (const std::filesystem::path& file : files) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
    stamp.newest_ = std::max(stamp.newest_, since_epoch(status.st_ctim));
    hash.update(file.string() + '\0' + five(status) + '\n');
  }
  stamp.digest_ = hash.finish();
  stamp.valid_ = true;
  return stamp;
}

StatCache::StatCache(const BlobStore& store, struct timespec began, std::chrono::nanoseconds settle)
    : store_(store), file_(store.root() / kSealCache), began_(since_epoch(began)), settle_(settle) {
  load();
}

void StatCache::load() {
  const auto text = read_file(file_, head().size() + kMostEntries * kRecord + Digest::kBytes);
  if (!text || !text->starts_with(head()) || text->size() < head().size() + Digest::kBytes) return;
  std::string_view rest(*text);
  std::string_view sum = rest.substr(rest.size() - Digest::kBytes);
  rest.remove_suffix(Digest::kBytes);
  if (sha256(rest) != take(sum)) return;
  rest.remove_prefix(head().size());
  while (rest.size() >= kRecord) {
    const Digest key = take(rest);
    Entry entry;
    entry.stamp = take(rest);
    entry.content.digest = take(rest);
    for (unsigned i = 0; i < 8; ++i) {
      entry.content.size |= std::uint64_t{static_cast<unsigned char>(rest[i])} << (8 * i);
    }
    rest.remove_prefix(8);
    entry.content.note = take(rest);
    entry.blob = take(rest);
    entries_.emplace_hint(entries_.end(), key, entry);
  }
}

std::optional<StatCache::Content> StatCache::find(const Digest& key, const Digest& stamp,
                                                  bool stored) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  Entry& entry = found->second;
  if (entry.stamp != stamp) return std::nullopt;
  if (stored &&
      (entry.blob == Digest() || entry.blob != stamp_of_blob(store_, entry.content.digest))) {
    return std::nullopt;
  }
  entry.used = true;
  return entry.content;
}

void StatCache::remember(const Digest& key, Entry entry) {
  const std::lock_guard lock(mutex_);
  entry.used = true;
  entries_[key] = entry;
  changed_ = true;
}

std::optional<StatCache::Content> StatCache::find(const std::string& purpose,
                                                  const std::filesystem::path& path,
                                                  const Stamp& now, bool stored) {
  if (!now.valid()) return std::nullopt;
  return find(key_of(purpose, path), now.digest_, stored);
}

void StatCache::remember(const std::string& purpose, const std::filesystem::path& path,
                         const Stamp& before, const Content& content, bool stored) {
  if (!before.valid() || before.newest_ + settle_ > began_) return;
  remember(
      key_of(purpose, path),
      {before.digest_, content, stored ? stamp_of_blob(store_, content.digest) : Digest(), true});
}

std::optional<StatCache::Content> StatCache::find_tree(const Digest& key) {
  return find(key_of_tree(key), Digest(), true);
}

void StatCache::remember_tree(const Digest& key, const Content& content) {
  remember(key_of_tree(key), {Digest(), content, stamp_of_blob(store_, content.digest), true});
}

Result<void> StatCache::save() {
  const std::lock_guard lock(mutex_);
  if (!changed_) return {};
  if (entries_.size() > kMostEntries) {
    std::erase_if(entries_, [](const auto& item) { return !item.second.used; });
  }
  while (entries_.size() > kMostEntries) entries_.erase(std::prev(entries_.end()));
  std::string bytes = head();
  bytes.reserve(bytes.size() + entries_.size() * kRecord + Digest::kBytes);
  for (const auto& [key, entry] : entries_) {
    put(bytes, key);
    put(bytes, entry.stamp);
    put(bytes, entry.content.digest);
    for (unsigned i = 0; i < 8; ++i) bytes += static_cast<char>(entry.content.size >> (8 * i));
    put(bytes, entry.content.note);
    put(bytes, entry.blob);
  }
  put(bytes, sha256(bytes));
  return write_file_atomic(file_, bytes);
}

}  // namespace qualify::store
