// What bundles read from outside: specs, JSON, tar archives, and text that may hold credentials.

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "qualify/archive/names.hpp"
#include "qualify/archive/tar.hpp"
#include "qualify/base/json.hpp"
#include "qualify/spec/bundle_spec.hpp"
#include "qualify/spec/credentials.hpp"

namespace fs = std::filesystem;
using namespace qualify;

namespace {

void require(bool good) {
  if (!good) std::abort();
}

/// What parses has canonical bytes, which parse to themselves.
[[maybe_unused]] void json(const std::string& text) {
  const auto value = parse_json(text, "input");
  if (!value) return;
  const auto bytes = canonical_json(*value);
  if (!bytes) return;  // a number without an exact form
  const auto again = parse_json(*bytes, "again");
  require(again.has_value());
  // A large double is written without a point, and an integer of that size is refused.
  if (const auto twice = canonical_json(*again)) require(*twice == *bytes);
}

/// A spec that is read has what its checks promise; a fault has a place.
[[maybe_unused]] void bundle_spec(const std::string& text) {
  static const fs::path file =
      fs::temp_directory_path() / ("fuzz-spec." + std::to_string(::getpid()) + ".yaml");
  std::ofstream(file, std::ios::binary) << text;
  const auto spec = spec::read_bundle_spec(file);
  if (spec) {
    require(!spec->arms.empty() && !spec->launch.argv.empty() && spec->topology.nodes > 0);
  } else {
    require(!spec.error().context.empty() && !spec.error().message.empty());
  }
  static_cast<void>(spec::credential_in_text(text));
}

/// Members stay inside the archive, and a tree of them that is written again reads the same.
[[maybe_unused]] void tar(const std::string& text) {
  std::size_t at = 0;
  archive::TarReader reader([&](std::span<std::byte> into) -> Result<std::size_t> {
    const std::size_t count = std::min({into.size(), text.size() - at, std::size_t{700}});
    std::memcpy(into.data(), text.data() + at, count);
    at += count;
    return count;
  });
  archive::TreeCheck check;
  std::uint64_t content = 0;
  std::byte buffer[1000];
  for (;;) {
    const auto entry = reader.next();
    if (!entry || !*entry) break;
    require((*entry)->offset <= text.size());
    static_cast<void>(archive::check_member_name(archive::printable((*entry)->path)));
    if (archive::check_member_name((*entry)->path)) {
      if ((*entry)->kind == archive::Entry::Kind::symlink) {
        check.add_symlink((*entry)->path, (*entry)->target);
      } else {
        check.add_file((*entry)->path);
      }
    }
    for (;;) {
      const auto count = reader.read(buffer);
      if (!count || *count == 0) break;
      content += *count;
    }
    require(content <= text.size());
  }
  for (const Error& fault : check.faults()) {
    require(canonical_json(Json(fault.describe())).has_value());  // valid UTF-8
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  QUALIFY_FUZZ_TARGET(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
