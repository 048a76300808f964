#include "stat_cache.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "index.hpp"
#include "qualify/base/files.hpp"
#include "qualify/base/json.hpp"
#include "qualify/base/version.hpp"

namespace qualify::store {

namespace {

constexpr int kVersion = 1;

/// What was accepted by another qualify is looked at again: it may look for more.
Json cache_version() {
  return std::to_string(kVersion) + " " + version();
}
constexpr std::size_t kMostEntries = 200'000;
constexpr std::uint64_t kLargestCache = 256U << 20U;

std::string five(const struct stat& status) {
  const auto time = [](const struct timespec& at) {
    return std::to_string(at.tv_sec) + "." + std::to_string(at.tv_nsec);
  };
  return std::to_string(status.st_dev) + " " + std::to_string(status.st_ino) + " " +
         std::to_string(status.st_size) + " " + time(status.st_mtim) + " " + time(status.st_ctim);
}

std::string five_of_blob(const BlobStore& store, const Digest& digest) {
  struct stat status {};
  if (::lstat(store.path_of(digest).c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return five(status);
}

std::chrono::nanoseconds since_epoch(const struct timespec& at) {
  return std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec);
}

}  // namespace

bool is_same(const struct stat& a, const struct stat& b) {
  return five(a) == five(b);
}

StatCache::Stamp StatCache::Stamp::of(const std::vector<std::filesystem::path>& files) {
  Stamp stamp;
  Sha256 many;
  for (const std::filesystem::path& file : files) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
    stamp.text_ = five(status);
    stamp.newest_ = std::max(stamp.newest_, since_epoch(status.st_ctim));
    many.update(file.string() + '\0' + stamp.text_ + '\n');
  }
  if (files.size() > 1) stamp.text_ = many.finish().hex();
  return stamp;
}

StatCache::StatCache(const BlobStore& store, struct timespec began, std::chrono::nanoseconds settle)
    : store_(store), file_(store.root() / kSealCache), began_(since_epoch(began)), settle_(settle) {
  load();
}

void StatCache::load() {
  const auto text = read_file(file_, kLargestCache);
  if (!text) return;
  const auto json = parse_json(*text, file_.string());
  if (!json) return;
  try {
    const Json& entries = json->at("entries");
    if (json->at("version") != cache_version() || json->at("check") != digest_of(entries).str())
      return;
    for (const auto& [key, item] : entries.items()) {
      const auto digest = Digest::parse(item.at(1).get<std::string>());
      if (!digest) continue;
      entries_[key] = {item.at(0), {*digest, item.at(2), item.at(3)}, item.at(4)};
    }
  } catch (const std::exception&) {
    entries_.clear();
  }
}

std::optional<StatCache::Content> StatCache::find(const std::string& key, const std::string& input,
                                                  bool stored) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  Entry& entry = found->second;
  if (entry.input != input) return std::nullopt;
  if (stored && (entry.blob.empty() || entry.blob != five_of_blob(store_, entry.content.digest))) {
    return std::nullopt;
  }
  entry.used = true;
  return entry.content;
}

void StatCache::remember(const std::string& key, Entry entry) {
  const std::lock_guard lock(mutex_);
  entry.used = true;
  entries_[key] = std::move(entry);
  changed_ = true;
}

std::optional<StatCache::Content> StatCache::find(const std::string& purpose,
                                                  const std::filesystem::path& path,
                                                  const Stamp& now, bool stored) {
  if (!now.valid()) return std::nullopt;
  return find(purpose + " " + path.string(), now.text_, stored);
}

void StatCache::remember(const std::string& purpose, const std::filesystem::path& path,
                         const Stamp& before, const Content& content, bool stored) {
  if (!before.valid() || before.newest_ + settle_ > began_) return;
  if (!canonical_json(Json(path.string()))) return;  // a name that is not UTF-8
  remember(purpose + " " + path.string(),
           {before.text_, content, stored ? five_of_blob(store_, content.digest) : ""});
}

std::optional<StatCache::Content> StatCache::find_tree(const Digest& key) {
  return find("tree " + key.hex(), "", true);
}

void StatCache::remember_tree(const Digest& key, const Content& content) {
  remember("tree " + key.hex(), {"", content, five_of_blob(store_, content.digest)});
}

Result<void> StatCache::save() {
  const std::lock_guard lock(mutex_);
  if (!changed_) return {};
  if (entries_.size() > kMostEntries) {
    std::erase_if(entries_, [](const auto& item) { return !item.second.used; });
  }
  Json entries = Json::object();
  for (const auto& [key, entry] : entries_) {
    entries[key] = {entry.input, entry.content.digest.str(), entry.content.size, entry.content.note,
                    entry.blob};
  }
  const Json root = {{"version", cache_version()},
                     {"check", digest_of(entries).str()},
                     {"entries", std::move(entries)}};
  return write_file_atomic(file_, canonical_bytes(root));
}

}  // namespace qualify::store
