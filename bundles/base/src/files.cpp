#include "qualify/base/files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

namespace qualify {

namespace {

constexpr std::size_t kPiece = 1U << 20U;

}  // namespace

Fd::~Fd() {
  reset();
}

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int Fd::release() {
  return std::exchange(fd_, -1);
}

void Fd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<Fd> open_read(const fs::path& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno(errno, "cannot open", path.string());
  return fd;
}

Result<std::uint64_t> read_stream(const fs::path& path, const Sink& sink) {
  auto fd = open_read(path);
  if (!fd) return tl::unexpected(fd.error());
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kPiece);
  std::uint64_t total = 0;
  for (;;) {
    const ssize_t count = ::read(fd->get(), buffer.get(), kPiece);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno(errno, "cannot read", path.string());
    if (count == 0) return total;
    const auto size = static_cast<std::size_t>(count);
    if (auto done = sink(std::span(buffer.get(), size)); !done) {
      return tl::unexpected(done.error());
    }
    total += size;
  }
}

Result<std::string> read_file(const fs::path& path, std::uint64_t limit) {
  std::string content;
  const auto done = read_stream(path, [&](std::span<const std::byte> piece) -> Result<void> {
    if (content.size() + piece.size() > limit) {
      return fail(Errc::invalid_input, "larger than " + std::to_string(limit) + " bytes",
                  path.string());
    }
    content.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return {};
  });
  if (!done) return tl::unexpected(done.error());
  return content;
}

Result<HashedFile> hash_file(const fs::path& path, const Sink& watch) {
  Sha256 hash;
  const auto size = read_stream(path, [&](std::span<const std::byte> piece) -> Result<void> {
    hash.update(piece);
    return watch ? watch(piece) : Result<void>();
  });
  if (!size) return tl::unexpected(size.error());
  return HashedFile{hash.finish(), *size};
}

Result<void> write_all(int fd, std::span<const std::byte> data, const fs::path& path_for_errors) {
  while (!data.empty()) {
    const ssize_t count = ::write(fd, data.data(), data.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno(errno, "cannot write", path_for_errors.string());
    data = data.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> sync_folder(const fs::path& folder) {
  const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno(errno, "cannot open folder", folder.string());
  // Some network file systems do not sync folders (EINVAL); the rename is then as durable as they
  // get.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) {
    return fail_errno(errno, "cannot sync folder", folder.string());
  }
  return {};
}

Result<void> write_file_atomic(const fs::path& path, std::string_view content, unsigned mode) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::string temporary = (folder / ("." + path.filename().string() + ".XXXXXX")).string();
  Fd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) return fail_errno(errno, "cannot create a file in", folder.string());
  const auto undo = [&](Result<void> why) {
    ::unlink(temporary.c_str());
    return why;
  };
  if (auto done = write_all(fd.get(), std::as_bytes(std::span(content)), path); !done) {
    return undo(done);
  }
  if (::fchmod(fd.get(), mode) != 0 || ::fsync(fd.get()) != 0) {
    return undo(fail_errno(errno, "cannot write", path.string()));
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    return undo(fail_errno(errno, "cannot replace", path.string()));
  }
  return sync_folder(folder);
}

Result<void> make_folders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return fail_errno(error.value(), "cannot create folder", folder.string());
  return {};
}

Result<FileLock> FileLock::acquire(const fs::path& path, bool wait) {
  return lock(path, LOCK_EX | (wait ? 0 : LOCK_NB));
}

Result<FileLock> FileLock::acquire_or(const fs::path& path, Error held) {
  auto lock = acquire(path, false);
  if (!lock && lock.error().code == Errc::busy) return Unexpected(std::move(held));
  return lock;
}

Result<FileLock> FileLock::acquire_shared(const fs::path& path) {
  return lock(path, LOCK_SH);
}

Result<FileLock> FileLock::lock(const fs::path& path, int operation) {
  // Without O_CREAT first: in a folder like /tmp even root may not open another's file with it
  // (fs.protected_regular). For reading where writing is not allowed: flock on local disks asks no
  // more.
  Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid() && errno == ENOENT) {
    fd = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  }
  if (!fd.valid() && (errno == EACCES || errno == EROFS)) {
    fd = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  }
  if (!fd.valid()) return fail_errno(errno, "cannot open lock", path.string());
  for (;;) {
    if (::flock(fd.get(), operation) == 0) return FileLock(std::move(fd));
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) {
      return fail(Errc::busy, "locked by another process", path.string());
    }
    const bool unsupported = errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOLCK;
    auto failure = fail_errno(errno, "cannot lock", path.string());
    if (unsupported) {
      failure.value().hint =
          "this file system has no locks (Lustre: mount it with -o flock); or --state DIR "
          "elsewhere";
    }
    return failure;
  }
}

}  // namespace qualify
