#include "unsettled.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace qualify::traces {

namespace {

constexpr std::size_t kMost = 64;

}  // namespace

Unsettled::~Unsettled() {
  for (const File& file : files_) ::unlink(file.temporary.c_str());
}

Result<void> Unsettled::add(Fd fd, fs::path temporary, fs::path path) {
  // Writing begins now, beside what seals the next file; only settle() waits for it.
  (void)::sync_file_range(fd.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
  const std::lock_guard lock(mutex_);
  files_.push_back({std::move(fd), std::move(temporary), std::move(path)});
  return files_.size() < kMost ? Result<void>{} : settle_all();
}

Result<void> Unsettled::settle() {
  const std::lock_guard lock(mutex_);
  return settle_all();
}

Result<void> Unsettled::settle_all() {
  for (const File& file : files_) {
    if (::fsync(file.fd.get()) != 0)
      return fail_errno(errno, "cannot sync", file.temporary.string());
  }
  while (!files_.empty()) {
    const File& file = files_.back();
    if (::rename(file.temporary.c_str(), file.path.c_str()) != 0) {
      return fail_errno(errno, "cannot rename", file.temporary.string());
    }
    files_.pop_back();
  }
  return {};
}

}  // namespace qualify::traces
