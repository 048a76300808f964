#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "qualify/archive/names.hpp"
#include "qualify/archive/tar.hpp"
#include "qualify/base/json.hpp"
#include "qualify/container/oci.hpp"

namespace qualify::container {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPiece = 1U << 20U;
constexpr std::uint64_t kLargestIndex = 4U << 20U;
constexpr std::string_view kBlobs = "blobs/sha256/";

Result<void> check_version(const std::string& layout, const std::string& context) {
  const auto json = parse_json(layout, context);
  if (json && json->is_object() && json->value("imageLayoutVersion", Json()) == "1.0.0") {
    return {};
  }
  return fail(Errc::invalid_input, "not an OCI image layout of version 1.0.0", context);
}

Result<std::size_t> read_some(int fd, std::span<std::byte> buffer, const fs::path& path) {
  for (;;) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno(errno, "cannot read", path.string());
    return static_cast<std::size_t>(count);
  }
}

/// Reads one member to its end, through `keep`.
Result<Digest> hash_member(archive::TarReader& tar, std::span<std::byte> buffer,
                           std::string* keep) {
  Sha256 hash;
  for (;;) {
    auto count = tar.read(buffer);
    if (!count) return tl::unexpected(count.error());
    if (*count == 0) return hash.finish();
    hash.update(buffer.first(*count));
    if (keep != nullptr) keep->append(reinterpret_cast<const char*>(buffer.data()), *count);
  }
}

Unexpected wrong_bytes(const Digest& named, const Digest& actual, const std::string& context) {
  return fail(Errc::integrity, "blob " + named.brief() + " has the digest " + actual.str(), context,
              "the image was changed or damaged on its way here; copy it again");
}

}  // namespace

Result<OciLayout> OciLayout::open_archive(const fs::path& file) {
  auto fd = open_read(file);
  if (!fd) return tl::unexpected(fd.error());
  OciLayout layout;
  layout.source_ = file;
  std::string version;
  std::vector<std::byte> buffer(kPiece);
  archive::TarReader tar(
      [&](std::span<std::byte> into) { return read_some(fd->get(), into, file); });
  const std::string context = file.string();
  for (;;) {
    auto next = tar.next();
    if (!next) {
      Error error = next.error();
      error.context = context + ", " + error.context;
      if (error.hint.empty()) error.hint = "an OCI archive is an uncompressed tar";
      return Unexpected(std::move(error));
    }
    if (!*next) break;
    archive::Entry& entry = **next;
    while (entry.path.starts_with("./")) entry.path.erase(0, 2);
    if (entry.kind == archive::Entry::Kind::folder) continue;
    if (auto good = archive::check_member_name(entry.path); !good) {
      return fail(Errc::invalid_input, "the archive holds a name that leaves it",
                  context + ": " + archive::printable(entry.path));
    }
    const bool is_blob = entry.path.starts_with(kBlobs);
    const auto named = is_blob ? Digest::parse(entry.path.substr(kBlobs.size())) : Result<Digest>();
    if (entry.kind != archive::Entry::Kind::file || !named ||
        (!is_blob && entry.path != "index.json" && entry.path != "oci-layout")) {
      return fail(Errc::invalid_input, "the archive holds something that is no part of a layout",
                  context + ": " + archive::printable(entry.path));
    }
    if (!is_blob && entry.size > kLargestIndex) {
      return fail(Errc::invalid_input, entry.path + " is too large", context);
    }
    std::string* const keep = is_blob                      ? nullptr
                              : entry.path == "index.json" ? &layout.index_
                                                           : &version;
    if (keep != nullptr && !keep->empty()) {
      return fail(Errc::invalid_input, "the archive holds " + entry.path + " twice", context);
    }
    auto digest = hash_member(tar, buffer, keep);
    if (!digest) return tl::unexpected(digest.error());
    if (!is_blob) continue;
    if (*digest != *named) return wrong_bytes(*named, *digest, context);
    layout.offsets_[*named] = entry.offset;
    layout.blobs_[*named] = entry.size;
  }
  if (auto good = check_version(version, context); !good) return tl::unexpected(good.error());
  return layout;
}

Result<OciLayout> OciLayout::open_folder(const fs::path& folder) {
  OciLayout layout;
  layout.source_ = folder;
  auto version = read_file(folder / "oci-layout", kLargestIndex);
  if (!version) {
    return fail(Errc::invalid_input, "not an OCI image layout: no readable oci-layout file",
                folder.string());
  }
  if (auto good = check_version(*version, folder.string()); !good) {
    return tl::unexpected(good.error());
  }
  auto index = read_file(folder / "index.json", kLargestIndex);
  if (!index) return tl::unexpected(index.error());
  layout.index_ = std::move(*index);
  std::error_code error;
  for (fs::directory_iterator it(folder / "blobs" / "sha256", error), end; !error && it != end;
       it.increment(error)) {
    const auto named = Digest::parse(it->path().filename().string());
    if (!named) continue;  // a download that was interrupted; nothing refers to it
    if (!it->is_regular_file(error) || it->is_symlink(error)) {
      return fail(Errc::invalid_input, "a blob is not a plain file", it->path().string());
    }
    layout.blobs_[*named] = it->file_size(error);
  }
  if (error) return fail_errno(error.value(), "cannot read folder", folder.string());
  return layout;
}

Result<void> OciLayout::stream(const Digest& digest, const Sink& sink) const {
  const auto size = blobs_.find(digest);
  if (size == blobs_.end()) {
    return fail(Errc::integrity, "blob " + digest.str() + " is missing", source_.string());
  }
  const auto offset = offsets_.find(digest);
  const fs::path path =
      offset == offsets_.end() ? source_ / "blobs" / "sha256" / digest.hex() : source_;
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno(errno, "cannot open", path.string());
  if (offset != offsets_.end() &&
      ::lseek(fd.get(), static_cast<off_t>(offset->second), SEEK_SET) < 0) {
    return fail_errno(errno, "cannot read", path.string());
  }
  std::vector<std::byte> buffer(kPiece);
  Sha256 hash;
  for (std::uint64_t left = size->second; left > 0;) {
    const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(left, buffer.size()));
    auto count = read_some(fd.get(), std::span(buffer).first(want), path);
    if (!count) return tl::unexpected(count.error());
    if (*count == 0) break;
    left -= *count;
    const auto piece = std::span(buffer).first(*count);
    hash.update(piece);
    if (auto done = sink(piece); !done) return done;
  }
  if (const Digest actual = hash.finish(); actual != digest) {
    return wrong_bytes(digest, actual, path.string());
  }
  return {};
}

Result<std::string> OciLayout::read(const Digest& digest, std::uint64_t limit) const {
  const auto size = blobs_.find(digest);
  if (size != blobs_.end() && size->second > limit) {
    return fail(Errc::invalid_input,
                "blob " + digest.brief() + " is too large for what it should be", source_.string());
  }
  std::string content;
  auto done = stream(digest, [&](std::span<const std::byte> piece) -> Result<void> {
    content.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return {};
  });
  if (!done) return tl::unexpected(done.error());
  return content;
}

}  // namespace qualify::container
