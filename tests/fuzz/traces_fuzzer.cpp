// Traces. QUALIFY_FUZZ_TARGET json_lines: any bytes as a rank's JSON Lines, with and without a
// manifest; what is read twice is the same twice, and survives sealing. sealed: a whole sealed file
// of two iterations, of which the input changes bytes (pairs of a 16-bit place and a byte), cuts it
// off, or, with a first byte of 0xFF, is it; whatever is accepted has the summary of its rows.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "qualify/base/files.hpp"
#include "qualify/traces/raw.hpp"
#include "qualify/traces/sealed_file.hpp"

namespace {

using namespace qualify;
using namespace qualify::traces;

void require(bool holds) {
  if (!holds) std::abort();
}

/// The readers take paths: a file that lies in memory.
std::string memory_file(const std::uint8_t* data, std::size_t size) {
  static const int fd = ::memfd_create("input", MFD_CLOEXEC);
  require(::ftruncate(fd, 0) == 0);
  require(::pwrite(fd, data, size, 0) == static_cast<ssize_t>(size));
  return "/proc/self/fd/" + std::to_string(fd);
}

std::string scratch() {
  return "/dev/shm/qualify-fuzz-" + std::to_string(::getpid());
}

[[maybe_unused]] Events read(const std::string& path, const Manifest& manifest, Strings& strings,
                             RankSummary& summary) {
  RawRank rank;
  rank.files.push_back({path, -1});
  RawEnd end;
  Events events;
  Summariser summariser(summary);
  require(read_raw(rank, manifest, {}, strings, end, [&](const Event& event, const RawPlace&) {
            events.push_back(event);
            summariser.add(event, strings);
            return true;
          }).has_value());
  summariser.finish();
  return events;
}

[[maybe_unused]] void json_lines(const std::uint8_t* data, std::size_t size) {
  const std::string path = memory_file(data, size);
  for (const bool known : {false, true}) {
    Manifest manifest;
    manifest.present = known;
    Strings strings;
    RankSummary first;
    RankSummary second;
    const Events events = read(path, manifest, strings, first);
    (void)read(path, manifest, strings, second);
    require(pack(first) == pack(second));
    require(unpack(pack(first)).has_value());
    if (events.empty() || known) continue;
    const std::string file = scratch();
    auto writer = SealedWriter::create(file, 0);
    require(writer.has_value());
    for (const Event& event : events) require(writer->append(event, strings).has_value());
    const auto summary = writer->finish(strings, {});
    require(summary.has_value() && root_of(*summary) == root_of(first));
    const auto sealed = SealedFile::open(file);
    ::unlink(file.c_str());
    require(sealed.has_value() && sealed->check().has_value());
    Strings other;
    const auto back = sealed->read_all(other);
    require(back.has_value() && back->size() == events.size());
    for (std::size_t i = 0; i < events.size(); ++i)
      require(equal(events[i], strings, (*back)[i], other));
  }
}

[[maybe_unused]] const std::string& whole_file() {
  static const std::string content = [] {
    Strings strings;
    const std::string file = scratch();
    auto writer = SealedWriter::create(file, 0);
    require(writer.has_value());
    for (std::int64_t i = 0; i < 40; ++i) {
      Event event;
      event.iteration = 1 + i / 20;
      event.rank_seq = i;
      event.phase = strings.id(i % 20 < 10 ? "forward" : "backward");
      event.site = strings.id("layer." + std::to_string(i % 20));
      event.kind = i % 3 == 0 ? Kind::collective : Kind::tensor;
      event.group = i % 3 == 0 ? strings.id("dp.0@0-3") : 0;
      event.group_seq = i % 3 == 0 ? i : -1;
      event.algorithm = Algorithm::device;
      event.digest_lo = static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15U;
      event.digest_hi = ~event.digest_lo;
      require(writer->append(event, strings).has_value());
    }
    require(writer->finish(strings, {}).has_value());
    auto text = read_file(file);
    ::unlink(file.c_str());
    return text.value();
  }();
  return content;
}

[[maybe_unused]] void sealed(const std::uint8_t* data, std::size_t size) {
  std::string content;
  if (size > 0 && data[0] == 0xFF) {
    content.assign(reinterpret_cast<const char*>(data + 1), size - 1);
  } else {
    content = whole_file();
    for (std::size_t at = 0; at + 3 <= size; at += 3) {
      std::uint16_t place = 0;
      std::memcpy(&place, data + at, sizeof place);
      content[place % content.size()] = static_cast<char>(data[at + 2]);
    }
    if (size % 3 == 2) content.resize(content.size() - data[size - 1]);
  }
  const std::string path =
      memory_file(reinterpret_cast<const std::uint8_t*>(content.data()), content.size());
  const auto file = SealedFile::open(path);
  if (!file) return;
  const bool good = file->check().has_value();
  Strings strings;
  const auto all = file->read_all(strings);
  require(!good || all.has_value());
  for (const auto& iteration : file->summary().iterations) {
    const auto events = file->read(iteration.iteration, strings);
    require(!good || (events.has_value() && events->size() == iteration.rows));
  }
  const auto same = SealedFile::same_values(*file, *file);
  require(!good || (same.has_value() && *same));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  QUALIFY_FUZZ_TARGET(data, size);
  return 0;
}
