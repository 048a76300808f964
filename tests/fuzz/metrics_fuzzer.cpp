// Any bytes as a metric file, its format forced and told by content. Besides not crashing, what is
// read must compare symmetrically, never differ from itself, and have a canonical record.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <nlohmann/json.hpp>
#include <span>

#include "qualify/exactness/compare.hpp"

#ifdef QUALIFY_FUZZ_FRAMED
#include "crc32c.hpp"
#endif

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

#ifdef QUALIFY_FUZZ_FRAMED
/// Each record is a length byte and as many bytes of the input.
std::string framed(const std::uint8_t* data, std::size_t size) {
  const auto raw = [](std::string& to, auto value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  std::string file;
  for (std::size_t at = 0; at < size;) {
    const std::size_t length = std::min<std::size_t>(data[at], size - at - 1);
    const std::string record(reinterpret_cast<const char*>(data + at + 1), length);
    std::string head;
    raw(head, static_cast<std::uint64_t>(length));
    raw(head,
        qualify::evidence::mask_crc(qualify::evidence::crc32c(std::as_bytes(std::span(head)))));
    file += head + record;
    raw(file,
        qualify::evidence::mask_crc(qualify::evidence::crc32c(std::as_bytes(std::span(record)))));
    at += 1 + length;
  }
  return file;
}
#endif

/// The readers take paths: a file that lies in memory.
int memory_file() {
  static const int fd = ::memfd_create("input", MFD_CLOEXEC);
  return fd;
}

void check(const qualify::evidence::RunMetrics& run, const qualify::evidence::RunMetrics& other) {
  using qualify::exactness::Outcome;
  require(qualify::exactness::compare(run, run).outcome != Outcome::differs);
  const auto there = qualify::exactness::compare(run, other);
  const auto back = qualify::exactness::compare(other, run);
  require(there.outcome == back.outcome && there.metrics.size() == back.metrics.size());
  require(qualify::canonical_json(qualify::exactness::to_json(there)).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
#ifdef QUALIFY_FUZZ_FRAMED
  const std::string content = framed(data, size);
  data = reinterpret_cast<const std::uint8_t*>(content.data());
  size = content.size();
#endif
  const int fd = memory_file();
  require(::ftruncate(fd, 0) == 0);
  require(::pwrite(fd, data, size, 0) == static_cast<ssize_t>(size));
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const auto forced = qualify::evidence::read_metrics(path, QUALIFY_FUZZ_FORMAT);
  const auto told = qualify::evidence::read_metrics(path);
  if (forced) check(*forced, told ? *told : qualify::evidence::RunMetrics{});
  return 0;
}
