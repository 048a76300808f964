#include "layout_check.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "qualify/archive/tar.hpp"
#include "qualify/base/files.hpp"

namespace qualify::run {

namespace {

constexpr std::size_t kPiece = 1U << 18U;

/// A file as a pull source; `hash` sees every byte of it.
archive::Source hashed_source(const Fd& fd, const fs::path& path, Sha256& hash) {
  return [&fd, path, &hash](std::span<std::byte> buffer) -> Result<std::size_t> {
    ssize_t count = 0;
    do {
      count = ::read(fd.get(), buffer.data(), buffer.size());
    } while (count < 0 && errno == EINTR);
    if (count < 0) return fail_errno(errno, "cannot read", path.string());
    hash.update(std::span<const std::byte>(buffer).first(static_cast<std::size_t>(count)));
    return static_cast<std::size_t>(count);
  };
}

class LayoutCheck {
 public:
  LayoutCheck(const store::BlobStore& store, const store::Bundle& bundle, const fs::path& folder)
      : store_(store), bundle_(bundle), folder_(folder) {}

  std::vector<std::string> run() {
    for (const store::SealedCode& code : bundle_.code) {
      const fs::path place = folder_ / "code" / code.name;
      if (auto read = check_code(code.archive.digest, place); !read) {
        faults_.push_back(read.error().describe());
      }
    }
    for (const store::SealedConfig& config : bundle_.configs) {
      check_hash(folder_ / "config" / config.name / config.file_name, config.content.digest);
    }
    if (bundle_.container.content.size > 0) {
      if (auto whole = store_.verify(bundle_.container.content.digest); !whole) {
        faults_.push_back(whole.error().describe());
      }
    }
    check_nothing_else();
    return std::move(faults_);
  }

 private:
  void fault(const fs::path& path, const std::string& what) {
    faults_.push_back(path.string() + " " + what);
  }

  void check_hash(const fs::path& path, const Digest& digest) {
    expected_.insert(path.string());
    const auto hashed = hash_file(path);
    if (!hashed) {
      faults_.push_back(hashed.error().describe());
    } else if (hashed->digest != digest) {
      fault(path, "is not what was sealed");
    }
  }

  Result<void> check_code(const Digest& digest, const fs::path& place) {
    const fs::path blob = store_.path_of(digest);
    const auto fd = open_read(blob);
    if (!fd) return tl::unexpected(fd.error());
    Sha256 hash;
    const archive::Source source = hashed_source(*fd, blob, hash);
    archive::TarReader tar(source);
    for (;;) {
      const auto entry = tar.next();
      if (!entry) return tl::unexpected(entry.error());
      if (!*entry) break;
      if (auto compared = compare(tar, **entry, place / (*entry)->path); !compared) {
        return compared;
      }
    }
    std::vector<std::byte> rest(kPiece);
    for (;;) {
      const auto count = source(rest);
      if (!count) return tl::unexpected(count.error());
      if (*count == 0) break;
    }
    if (hash.finish() != digest) {
      return fail(Errc::integrity, "the sealed code does not have its digest", blob.string(),
                  "qualify bundle verify");
    }
    return {};
  }

  /// Errors: those of the archive; what differs on disk is a fault.
  Result<void> compare(archive::TarReader& tar, const archive::Entry& entry, const fs::path& path) {
    expected_.insert(path.string());
    if (entry.kind == archive::Entry::Kind::symlink) {
      std::error_code error;
      const fs::path target = fs::read_symlink(path, error);
      if (error || target != entry.target) fault(path, "is not the link that was sealed");
      return {};
    }
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) {
      fault(path, "is missing");
      return {};
    }
    if (!S_ISREG(status.st_mode)) {
      fault(path, "is not a plain file");
      return {};
    }
    if (((status.st_mode & S_IXUSR) != 0) != entry.executable) {
      fault(path, entry.executable ? "lost its executable bit" : "became executable");
    }
    const auto file = open_read(path);
    if (!file) {
      faults_.push_back(file.error().describe());
      return {};
    }
    std::vector<std::byte> sealed(kPiece);
    std::vector<std::byte> laid(kPiece);
    for (;;) {
      const auto wanted = tar.read(sealed);
      if (!wanted) return tl::unexpected(wanted.error());
      // At the end of what was sealed, one byte more than nothing would be one too many.
      const std::size_t ask = std::max<std::size_t>(*wanted, 1);
      std::size_t have = 0;
      while (have < ask) {
        const ssize_t count = ::read(file->get(), laid.data() + have, ask - have);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
          fault(path, "cannot be read");
          return {};
        }
        if (count == 0) break;
        have += static_cast<std::size_t>(count);
      }
      if (have != *wanted ||
          !std::equal(sealed.begin(), sealed.begin() + static_cast<std::ptrdiff_t>(have),
                      laid.begin())) {
        fault(path, "is not what was sealed");
        return {};
      }
      if (*wanted == 0) return {};
    }
  }

  void check_nothing_else() {
    std::error_code error;
    for (fs::recursive_directory_iterator it(folder_, error), end; !error && it != end;
         it.increment(error)) {
      std::error_code ignored;
      if (it->is_directory(ignored) && !it->is_symlink(ignored)) continue;
      if (!expected_.contains(it->path().string())) fault(it->path(), "was never sealed");
    }
    if (error) fault(folder_, "cannot be listed: " + error.message());
  }

  const store::BlobStore& store_;
  const store::Bundle& bundle_;
  const fs::path& folder_;
  std::set<std::string> expected_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> check_layout(const store::BlobStore& store, const store::Bundle& bundle,
                                      const fs::path& folder) {
  return LayoutCheck(store, bundle, folder).run();
}

}  // namespace qualify::run
