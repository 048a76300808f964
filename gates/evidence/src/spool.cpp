#include "spool.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace qualify::evidence {

namespace {

/// Not every file system has unnamed files (O_TMPFILE): there a named one is made and unlinked.
Result<Fd> unnamed_file(const std::filesystem::path& folder) {
  Fd file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.valid()) return file;
  std::string name = (folder / "qualify-XXXXXX").string();
  file = Fd(::mkostemp(name.data(), O_CLOEXEC));
  if (!file.valid()) {
    Error error = fail_errno(errno, "cannot make a temporary file in", folder.string()).value();
    error.hint = "set TMPDIR to a folder that can be written to and has room";
    return Unexpected(std::move(error));
  }
  ::unlink(name.c_str());
  return file;
}

}  // namespace

Result<void> Spool::write(std::string_view bytes) {
  if (!file_.valid()) {
    auto made = unnamed_file(folder_);
    if (!made) return tl::unexpected(made.error());
    file_ = std::move(*made);
  }
  return write_all(file_.get(), std::as_bytes(std::span(bytes)), folder_);
}

std::optional<std::uint64_t> Spool::put(std::string_view bytes) {
  if (error_ || kept_ + bytes.size() <= memory_) {
    kept_ += bytes.size();
    return std::nullopt;
  }
  if (auto written = write(bytes); !written) {
    error_ = written.error();
    return std::nullopt;
  }
  const std::uint64_t place = end_;
  end_ += bytes.size();
  return place;
}

void Spool::get(std::uint64_t place, std::string& bytes) const {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::pread(file_.get(), bytes.data() + done, bytes.size() - done,
                                  static_cast<off_t>(place + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      throw std::runtime_error("cannot read back temporary values in " + folder_.string() + ": " +
                               std::system_category().message(count < 0 ? errno : EIO));
    }
    done += static_cast<std::size_t>(count);
  }
}

}  // namespace qualify::evidence
