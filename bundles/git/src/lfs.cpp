#include "lfs.hpp"

#include <charconv>

namespace qualify::git {

namespace {

constexpr std::string_view kVersionKey = "version https://git-lfs.github.com/spec/v1\n";
constexpr std::string_view kOldVersionKey = "version https://hawser.github.com/spec/v1\n";

}  // namespace

Result<std::optional<LfsPointer>> parse_lfs_pointer(std::string_view content) {
  if (content.size() > kLargestPointer) return std::nullopt;
  if (!content.starts_with(kVersionKey) && !content.starts_with(kOldVersionKey)) {
    return std::nullopt;
  }
  LfsPointer pointer;
  bool has_digest = false;
  bool has_size = false;
  for (std::string_view rest = content; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    if (line.starts_with("ext-")) {
      return fail(Errc::refused, "an LFS pointer uses an extension", {},
                  "its content needs a program to restore it; store the file without it");
    }
    if (line.starts_with("oid ")) {
      const auto digest = Digest::parse(line.substr(4));
      if (!digest || !line.substr(4).starts_with("sha256:")) {
        return fail(Errc::refused, "an LFS pointer has an unknown object id");
      }
      pointer.digest = *digest;
      has_digest = true;
    }
    if (line.starts_with("size ")) {
      const char* const last = line.data() + line.size();
      const auto parsed = std::from_chars(line.data() + 5, last, pointer.size);
      has_size = parsed.ec == std::errc() && parsed.ptr == last;
    }
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  if (!has_digest || !has_size) return fail(Errc::refused, "an LFS pointer is not complete");
  return std::optional<LfsPointer>(pointer);
}

std::filesystem::path lfs_object(git_repository* repository, const Digest& digest) {
  const std::filesystem::path common = git_repository_commondir(repository);
  std::filesystem::path storage = common / "lfs";
  git_config* raw = nullptr;
  if (git_repository_config_snapshot(&raw, repository) == 0) {
    const Config config(raw);
    const char* configured = nullptr;
    if (git_config_get_string(&configured, config.get(), "lfs.storage") == 0) {
      storage = common / configured;  // an absolute one replaces the left side
    }
  }
  const std::string name = digest.hex();
  return storage / "objects" / name.substr(0, 2) / name.substr(2, 2) / name;
}

}  // namespace qualify::git
