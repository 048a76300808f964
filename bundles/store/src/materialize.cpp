#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <memory>

#include "open_blob.hpp"
#include "parallel.hpp"
#include "qualify/archive/names.hpp"
#include "qualify/archive/tar.hpp"
#include "qualify/store/bundle.hpp"

namespace qualify::store {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPiece = 1U << 18U;

Result<Fd> create_file(const fs::path& path, bool executable) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return fail_errno(errno, "cannot create", path.string());
  // fchmod, as the creation mode is subject to the umask.
  if (::fchmod(fd.get(), executable ? 0555 : 0444) != 0) {
    return fail_errno(errno, "cannot set the mode of", path.string());
  }
  return fd;
}

/// A stored blob as a pull source: hashed while it is read, compared at the end.
class BlobSource {
 public:
  static Result<BlobSource> open(const BlobStore& store, const Descriptor& blob) {
    const fs::path path = store.path_of(blob.digest);
    auto fd = open_blob(path);
    if (!fd) return tl::unexpected(fd.error());
    return BlobSource(path, blob.digest, std::move(*fd));
  }
  Result<std::size_t> read(std::span<std::byte> buffer) {
    ssize_t count = 0;
    do {
      count = ::read(fd_.get(), buffer.data(), buffer.size());
    } while (count < 0 && errno == EINTR);
    if (count < 0) return fail_errno(errno, "cannot read", path_.string());
    hash_.update(std::span(buffer).first(static_cast<std::size_t>(count)));
    return static_cast<std::size_t>(count);
  }
  /// Reads what is left and compares.
  Result<void> finish() {
    std::vector<std::byte> rest(kPiece);
    for (;;) {
      auto count = read(rest);
      if (!count) return tl::unexpected(count.error());
      if (*count == 0) break;
    }
    if (hash_.finish() != digest_) {
      return fail(Errc::integrity, "its bytes do not have its digest", path_.string(),
                  "qualify bundle verify");
    }
    return {};
  }

 private:
  BlobSource(fs::path path, Digest digest, Fd fd)
      : path_(std::move(path)), digest_(digest), fd_(std::move(fd)) {}
  fs::path path_;
  Digest digest_;
  Fd fd_;
  Sha256 hash_;
};

Result<void> copy_entry(archive::TarReader& tar, const archive::Entry& entry,
                        const fs::path& path) {
  auto fd = create_file(path, entry.executable);
  if (!fd) return tl::unexpected(fd.error());
  std::vector<std::byte> buffer(static_cast<std::size_t>(
      std::min<std::uint64_t>(kPiece, std::max<std::uint64_t>(entry.size, 1))));
  for (;;) {
    auto count = tar.read(buffer);
    if (!count) return tl::unexpected(count.error());
    if (*count == 0) return {};
    if (auto done = write_all(fd->get(), std::span(buffer).first(*count), path); !done) return done;
  }
}

/// What no tree that was sealed has: the archive came from elsewhere.
Unexpected not_sealed(Error fault) {
  fault.code = Errc::integrity;
  return Unexpected(std::move(fault));
}

/// Unpacks a code archive. Links are made last: no file is ever written through one.
Result<void> unpack(const BlobStore& store, const Descriptor& blob, const fs::path& folder) {
  auto source = BlobSource::open(store, blob);
  if (!source) return tl::unexpected(source.error());
  archive::TarReader tar([&](std::span<std::byte> buffer) { return source->read(buffer); });
  archive::TreeCheck check;
  std::vector<archive::Entry> links;
  if (auto done = make_folders(folder); !done) return done;
  for (;;) {
    auto entry = tar.next();
    if (!entry) return tl::unexpected(entry.error());
    if (!*entry) break;
    const archive::Entry& found = **entry;
    if (auto good = archive::check_member_name(found.path); !good) return not_sealed(good.error());
    if (found.kind == archive::Entry::Kind::symlink) {
      if (auto good = archive::check_link_target(found.path, found.target); !good) {
        return not_sealed(good.error());
      }
      check.add_symlink(found.path, found.target);
      links.push_back(found);
      continue;
    }
    if (found.kind != archive::Entry::Kind::file) {
      return fail(Errc::integrity, "a code archive holds something other than files and links",
                  archive::printable(found.path));
    }
    check.add_file(found.path);
    const fs::path path = folder / found.path;
    if (auto done = make_folders(path.parent_path()); !done) return done;
    if (auto done = copy_entry(tar, found, path); !done) return done;
  }
  if (auto done = source->finish(); !done) return done;
  if (auto faults = check.faults(); !faults.empty()) return not_sealed(faults.front());
  for (const archive::Entry& link : links) {
    const fs::path path = folder / link.path;
    if (auto done = make_folders(path.parent_path()); !done) return done;
    if (::symlink(link.target.c_str(), path.c_str()) != 0) {
      return fail_errno(errno, "cannot create link", path.string());
    }
  }
  return {};
}

Result<void> copy_blob(const BlobStore& store, const Descriptor& blob, const fs::path& path) {
  auto fd = create_file(path, false);
  if (!fd) return tl::unexpected(fd.error());
  const auto size = store.stream(blob.digest, [&](std::span<const std::byte> piece) {
    return write_all(fd->get(), piece, path);
  });
  if (!size) return tl::unexpected(size.error());
  return {};
}

/// Everything that the bundle holds, in parallel. The container stays where it is, and is read to
/// its end like the rest: what runs is what was sealed.
Result<void> fill(const BlobStore& store, const Bundle& bundle, const fs::path& folder) {
  std::vector<std::function<Result<void>()>> tasks;
  if (bundle.container.content.size > 0) {
    tasks.emplace_back([&] { return store.verify(bundle.container.content.digest); });
  }
  for (const SealedCode& code : bundle.code) {
    tasks.emplace_back([&] { return unpack(store, code.archive, folder / "code" / code.name); });
  }
  for (const SealedConfig& config : bundle.configs) {
    tasks.emplace_back([&]() -> Result<void> {
      const fs::path place = folder / "config" / config.name;
      if (auto done = make_folders(place); !done) return done;
      return copy_blob(store, config.content, place / config.file_name);
    });
  }
  std::vector<Result<void>> done(tasks.size());
  for_each_index(tasks.size(), 0, [&](std::size_t i) { done[i] = tasks[i](); });
  for (Result<void>& one : done) {
    if (!one) return std::move(one);
  }
  return {};
}

/// Folders to 0555 or 0755, deepest first where they become read-only.
void set_folder_modes(const fs::path& folder, mode_t mode) {
  std::error_code error;
  if (mode == 0755) ::chmod(folder.c_str(), mode);
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_directory(error) && !entry.is_symlink(error)) set_folder_modes(entry.path(), mode);
  }
  if (mode != 0755) ::chmod(folder.c_str(), mode);
}

void remove_tree(const fs::path& folder) {
  std::error_code error;
  set_folder_modes(folder, 0755);
  fs::remove_all(folder, error);
}

}  // namespace

Result<void> materialize(const BlobStore& store, const Bundle& bundle, const fs::path& folder) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(folder, error))) {
    return fail(Errc::already_exists, "the folder is there already", folder.string(),
                "name one that does not exist");
  }
  const fs::path target = fs::absolute(folder, error).lexically_normal();
  const fs::path parent = target.parent_path();
  if (auto done = make_folders(parent); !done) return done;
  // Built beside its place and renamed when complete: nobody sees a half of it.
  std::string temporary = (parent / ("." + target.filename().string() + ".XXXXXX")).string();
  if (::mkdtemp(temporary.data()) == nullptr) {
    return fail_errno(errno, "cannot create a folder in", parent.string());
  }
  if (auto done = fill(store, bundle, temporary); !done) {
    remove_tree(temporary);
    return done;
  }
  set_folder_modes(temporary, 0555);
  // Renaming a folder needs write permission on it where its ".." changes; the parent stays here.
  if (::rename(temporary.c_str(), target.c_str()) != 0) {
    const int number = errno;
    remove_tree(temporary);
    return fail_errno(number, "cannot rename into place", target.string());
  }
  return sync_folder(parent);
}

}  // namespace qualify::store
