#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "qualify/archive/names.hpp"
#include "qualify/archive/tar.hpp"
#include "qualify/base/files.hpp"
#include "qualify/store/bundle.hpp"

namespace qualify::store {

namespace {

/// Writes one file that must not exist, then makes it read-only.
Result<void> write_new(const fs::path& path, unsigned mode,
                       const std::function<Result<void>(int fd)>& fill) {
  if (auto made = make_folders(path.parent_path()); !made) return made;
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return fail_errno(errno, "cannot create", path.string());
  if (auto done = fill(fd.get()); !done) return done;
  if (::fchmod(fd.get(), mode) != 0) return fail_errno(errno, "cannot set mode", path.string());
  return {};
}

Result<void> extract(const BlobStore& store, const Digest& digest, const fs::path& folder) {
  // Hashed first: nothing of a damaged archive is laid out.
  if (auto whole = store.verify(digest); !whole) return whole;
  const auto fd = open_read(store.path_of(digest));
  if (!fd) return tl::unexpected(fd.error());
  const auto read_some = [&](std::span<std::byte> buffer) -> Result<std::size_t> {
    for (;;) {
      const ssize_t count = ::read(fd->get(), buffer.data(), buffer.size());
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno != EINTR) return fail_errno(errno, "cannot read", store.path_of(digest).string());
    }
  };
  archive::TarReader reader(read_some);
  std::vector<std::byte> buffer(1U << 18U);
  for (;;) {
    auto entry = reader.next();
    if (!entry) return tl::unexpected(entry.error());
    if (!*entry) return {};
    if (auto good = archive::check_member_name((*entry)->path); !good) return good;
    const fs::path path = folder / (*entry)->path;
    if ((*entry)->kind == archive::Entry::Kind::symlink) {
      if (auto made = make_folders(path.parent_path()); !made) return made;
      if (::symlink((*entry)->target.c_str(), path.c_str()) != 0) {
        return fail_errno(errno, "cannot link", path.string());
      }
      continue;
    }
    if ((*entry)->kind != archive::Entry::Kind::file) {
      return fail(Errc::integrity, "neither a file nor a symbolic link", (*entry)->path);
    }
    const unsigned mode = (*entry)->executable ? 0555 : 0444;
    auto written = write_new(path, mode, [&](int out) -> Result<void> {
      for (;;) {
        const auto count = reader.read(buffer);
        if (!count) return tl::unexpected(count.error());
        if (*count == 0) return {};
        if (auto done = write_all(out, std::span(buffer).first(*count), path); !done) return done;
      }
    });
    if (!written) return written;
  }
}

/// Folders last and deepest first, for nothing can be made in a read-only one.
Result<void> make_read_only(const fs::path& folder) {
  std::vector<fs::path> folders = {folder};
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (!it->is_symlink() && it->is_directory()) folders.push_back(it->path());
  }
  if (error) return fail_errno(error.value(), "cannot list", folder.string());
  for (auto it = folders.rbegin(); it != folders.rend(); ++it) {
    if (::chmod(it->c_str(), 0555) != 0) {
      return fail_errno(errno, "cannot make read-only", it->string());
    }
  }
  return {};
}

}  // namespace

Result<void> materialize(const BlobStore& store, const Bundle& bundle,
                         const std::filesystem::path& folder) {
  if (fs::exists(folder)) {
    return fail(Errc::already_exists, "the folder is there already", folder.string());
  }
  if (auto made = make_folders(folder); !made) return made;
  for (const SealedCode& tree : bundle.code) {
    const fs::path target = folder / "code" / tree.name;
    if (auto made = make_folders(target); !made) return made;
    if (auto done = extract(store, tree.archive.digest, target); !done) return done;
  }
  for (const SealedConfig& config : bundle.configs) {
    if (auto good = archive::check_member_name(config.file_name); !good) return good;
    const auto content = store.read(config.content.digest);
    if (!content) return tl::unexpected(content.error());
    const fs::path target = folder / "config" / config.name / config.file_name;
    auto written = write_new(target, 0444, [&](int out) {
      return write_all(out, std::as_bytes(std::span(*content)), target);
    });
    if (!written) return written;
  }
  const bool stored = bundle.container.kind != spec::ContainerKind::none &&
                      bundle.container.kind != spec::ContainerKind::reference;
  if (stored) {
    if (auto whole = store.verify(bundle.container.content.digest); !whole) return whole;
  }
  return make_read_only(folder);
}

}  // namespace qualify::store
