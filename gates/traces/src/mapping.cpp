#include "mapping.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "qualify/base/files.hpp"

namespace qualify::traces {

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
}

Result<Mapping> map_file(const std::filesystem::path& path, bool whole) {
  auto fd = open_read(path);
  if (!fd) return tl::unexpected(fd.error());
  struct stat status = {};
  if (::fstat(fd->get(), &status) != 0) return fail_errno(errno, "cannot read", path.string());
  const auto size = static_cast<std::size_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || size == 0) return Mapping();
  void* data =
      ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | (whole ? MAP_POPULATE : 0), fd->get(), 0);
  if (data == MAP_FAILED) return fail_errno(errno, "cannot map", path.string());
  return Mapping(static_cast<const char*>(data), size);
}

}  // namespace qualify::traces
