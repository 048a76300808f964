#include "secret_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace qualify::ledger {

namespace {

constexpr std::size_t kMaxKeyFile = 64U << 10U;  // bytes

}  // namespace

std::string_view SecretBio::view() const {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio_.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

Result<void> write_new_secret(const fs::path& file, std::string_view content) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  std::string temporary = (folder / ("." + file.filename().string() + ".XXXXXX")).string();
  const Fd fd(::mkostemp(temporary.data(), O_CLOEXEC));  // mode 0600
  if (!fd.valid()) return fail_errno(errno, "cannot create a file in", folder.string());
  const auto undo = [&](Result<void> why) {
    ::unlink(temporary.c_str());
    return why;
  };
  if (auto done = write_all(fd.get(), std::as_bytes(std::span(content)), file); !done) {
    return undo(done);
  }
  if (::fsync(fd.get()) != 0) return undo(fail_errno(errno, "cannot write", file.string()));
  // link() fails where rename() would replace.
  if (::link(temporary.c_str(), file.c_str()) != 0) {
    const int error = errno;
    if (error == EEXIST) {
      return undo(fail(Errc::already_exists, "a key is there already", file.string(),
                       "keys are never replaced; choose another name"));
    }
    return undo(fail_errno(error, "cannot create", file.string()));
  }
  ::unlink(temporary.c_str());
  return sync_folder(folder);
}

Result<Fd> open_secret(const fs::path& file) {
  auto fd = open_read(file);
  if (!fd) return fd;
  struct stat status {};
  // The opened file is what is looked at, not its name again.
  if (::fstat(fd->get(), &status) != 0) return fail_errno(errno, "cannot read", file.string());
  if (!S_ISREG(status.st_mode)) {
    return fail(Errc::refused, "a key must be a regular file", file.string());
  }
  if ((status.st_mode & 077U) != 0) {
    return fail(Errc::refused, "others may read or write this private key", file.string(),
                "chmod 600 " + file.string() + ", and make a new one if it may have been copied");
  }
  if (static_cast<std::size_t>(status.st_size) > kMaxKeyFile) {
    return fail(Errc::invalid_input, "too large for a key", file.string());
  }
  return fd;
}

}  // namespace qualify::ledger
