#include "qualify/container/image.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "qualify/base/files.hpp"

namespace qualify::container {

namespace {

struct Head {
  std::array<char, 96> bytes{};
  std::uint64_t size = 0;
  [[nodiscard]] std::string_view text(std::size_t at, std::size_t count) const {
    return {bytes.data() + at, count};
  }
  [[nodiscard]] std::uint64_t little_endian(std::size_t at, std::size_t count) const {
    std::uint64_t value = 0;
    for (std::size_t i = count; i-- > 0;) {
      value = (value << 8U) | static_cast<unsigned char>(bytes[at + i]);
    }
    return value;
  }
};

Result<Head> read_head(const std::filesystem::path& file) {
  auto fd = open_read(file);
  if (!fd) return tl::unexpected(fd.error());
  struct stat status {};
  if (::fstat(fd->get(), &status) != 0) return fail_errno(errno, "cannot stat", file.string());
  if (!S_ISREG(status.st_mode)) {
    return fail(Errc::invalid_input, "the container is not a plain file", file.string());
  }
  Head head;
  head.size = static_cast<std::uint64_t>(status.st_size);
  const ssize_t count = ::pread(fd->get(), head.bytes.data(), head.bytes.size(), 0);
  if (count < 0) return fail_errno(errno, "cannot read", file.string());
  if (static_cast<std::size_t>(count) < head.bytes.size()) {
    return fail(Errc::invalid_input, "too short for a container image", file.string());
  }
  return head;
}

}  // namespace

Result<void> check_squashfs(const std::filesystem::path& file) {
  const auto head = read_head(file);
  if (!head) return tl::unexpected(head.error());
  if (head->text(0, 4) != "hsqs") {
    return fail(Errc::invalid_input, "not a squashfs image", file.string(),
                "enroot import writes one; check 'kind' of the container");
  }
  if (head->little_endian(28, 2) != 4) {
    return fail(Errc::unsupported, "a squashfs image of another version than 4", file.string());
  }
  if (head->little_endian(40, 8) > head->size) {
    return fail(Errc::invalid_input, "the squashfs image is cut short", file.string(),
                "copy or import it again");
  }
  return {};
}

Result<void> check_sif(const std::filesystem::path& file) {
  const auto head = read_head(file);
  if (!head) return tl::unexpected(head.error());
  if (head->text(32, 9) != "SIF_MAGIC") {
    return fail(Errc::invalid_input, "not a SIF image", file.string(),
                "apptainer build writes one; check 'kind' of the container");
  }
  return {};
}

}  // namespace qualify::container
