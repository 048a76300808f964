#include "qualify/store/garbage.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "config_json.hpp"
#include "index.hpp"
#include "load.hpp"

namespace qualify::store {

namespace {

namespace fs = std::filesystem;

Result<std::set<Digest>> reachable(const BlobStore& store, const CollectOptions& options) {
  auto index = read_index(store);
  if (!index) return tl::unexpected(index.error());
  // What is to be kept is kept whole, also where the index has lost it.
  std::set<Digest> bundles;
  for (const Digest& digest : options.keep) {
    const auto bytes = store.read(digest, kLargestManifest);
    if (!bytes && bytes.error().code == Errc::integrity) return tl::unexpected(bytes.error());
    if (bytes && read_manifest(*bytes, {})) bundles.insert(digest);
  }
  for (const IndexEntry& entry : index->entries) bundles.insert(entry.manifest.digest);
  for (const Digest& digest : options.drop) bundles.erase(digest);
  std::set<Digest> reached = options.keep;
  for (const Digest& digest : bundles) {
    auto loaded = load_checked(store, digest);
    if (!loaded) return tl::unexpected(loaded.error());
    reached.insert(digest);
    reached.insert(loaded->config.digest);
    for (const Descriptor& layer : layers_of(loaded->bundle)) reached.insert(layer.digest);
  }
  return reached;
}

Time modified(const struct stat& status) {
  return Time(std::chrono::seconds(status.st_mtim.tv_sec) +
              std::chrono::microseconds(status.st_mtim.tv_nsec / 1000));
}

/// What write_file_atomic left when it was killed.
bool is_abandoned(const std::string& name) {
  return name.starts_with(".index.json.") || name.starts_with(".oci-layout.") ||
         name.starts_with("." + std::string(kSealCache) + ".");
}

}  // namespace

Result<Garbage> collect_garbage(BlobStore& store, const CollectOptions& options,
                                const Clock& clock) {
  for (const Digest& digest : options.drop) {
    if (options.keep.contains(digest)) {
      return fail(Errc::refused, "bundle " + digest.str() + " cannot be dropped",
                  store.root().string(), "a run, grant or certificate names it");
    }
  }
  std::optional<FileLock> lock;
  if (options.remove) {
    auto held = FileLock::acquire(store.root() / kCollectLock, false);
    if (!held && held.error().code == Errc::busy) {
      return fail(Errc::busy, "a seal or import is going on", store.root().string(),
                  "try again when it has ended");
    }
    if (!held) return tl::unexpected(held.error());
    lock = std::move(*held);
    for (const Digest& digest : options.drop) {
      if (auto done = remove_from_index(store, digest); !done) return tl::unexpected(done.error());
    }
  }
  auto reached = reachable(store, options);
  if (!reached) return tl::unexpected(reached.error());
  Garbage garbage;
  const Time limit = clock.now() - options.grace;
  const fs::path folder = store.root() / "blobs" / "sha256";
  const auto add = [&](const fs::path& file) {
    struct stat status {};
    if (::lstat(file.c_str(), &status) != 0 || modified(status) > limit) return;
    garbage.files.push_back(file);
    garbage.bytes += static_cast<std::uint64_t>(status.st_size);
  };
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const auto digest = Digest::parse(name);
    if (digest ? !reached->contains(*digest) : name.starts_with(kTemporaryPrefix)) {
      add(it->path());
    }
  }
  for (fs::directory_iterator it(store.root(), error), end; !error && it != end;
       it.increment(error)) {
    if (is_abandoned(it->path().filename().string())) add(it->path());
  }
  if (error) return fail_errno(error.value(), "cannot read folder", folder.string());
  std::sort(garbage.files.begin(), garbage.files.end());
  if (!options.remove) return garbage;
  for (const fs::path& file : garbage.files) {
    if (::unlink(file.c_str()) != 0 && errno != ENOENT) {
      return fail_errno(errno, "cannot remove", file.string());
    }
  }
  if (auto done = sync_folder(folder); !done) return tl::unexpected(done.error());
  return garbage;
}

}  // namespace qualify::store
