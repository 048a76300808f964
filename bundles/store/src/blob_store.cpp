#include "qualify/store/blob_store.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>

#include "copy.hpp"
#include "index.hpp"
#include "open_blob.hpp"
#include "qualify/base/json.hpp"
#include "stat_cache.hpp"

namespace qualify::store {

Result<Fd> open_blob(const std::filesystem::path& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid() && errno == ELOOP) {
    return fail(Errc::integrity, "a symbolic link stands in the place of a blob", path.string());
  }
  if (!fd.valid() && errno == ENOENT) return fail(Errc::not_found, "no such blob", path.string());
  if (!fd.valid()) return fail_errno(errno, "cannot open blob", path.string());
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return fail_errno(errno, "cannot stat", path.string());
  if (!S_ISREG(status.st_mode)) {
    return fail(Errc::integrity, "a blob is not a plain file", path.string());
  }
  return fd;
}

namespace {

Result<std::uint64_t> stream_blob(const std::filesystem::path& path, const Digest& digest,
                                  const Sink& sink) {
  auto fd = open_blob(path);
  if (!fd) return tl::unexpected(fd.error());
  const auto hashed = hash_stream(fd->get(), path, sink);
  if (!hashed) return tl::unexpected(hashed.error());
  if (hashed->digest != digest) {
    return fail(Errc::integrity, "its bytes have the digest " + hashed->digest.str(), path.string(),
                "the stored blob was changed or the disk is failing; importing an export of its "
                "bundle puts it right");
  }
  return hashed->size;
}

/// Where locks do not reach (some network file systems), its time keeps a blob from being collected
/// before the index names it. One that is young beside the file just written keeps its times, by
/// which the seal cache knows it.
void renew(const std::filesystem::path& path, int written) {
  constexpr time_t kOld = 3600;  // seconds; garbage collection's grace period is a day
  struct stat blob {};
  struct stat now {};
  if (::lstat(path.c_str(), &blob) == 0 && ::fstat(written, &now) == 0 &&
      now.st_mtim.tv_sec - blob.st_mtim.tv_sec < kOld) {
    return;
  }
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

Result<void> check_layout(const std::filesystem::path& root) {
  auto layout = read_file(root / "oci-layout", 4096);
  if (!layout) {
    const Errc code = layout.error().code == Errc::not_found ? Errc::not_found : Errc::integrity;
    return fail(code, "not a bundle store: no readable oci-layout file", root.string());
  }
  const auto json = parse_json(*layout, (root / "oci-layout").string());
  if (!json || !json->is_object() || json->value("imageLayoutVersion", Json()) != "1.0.0") {
    return fail(Errc::integrity, "not an OCI image layout of version 1.0.0",
                (root / "oci-layout").string());
  }
  for (const char* folder : {"blobs", "blobs/sha256"}) {
    struct stat status {};
    if (::lstat((root / folder).c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
      return fail(Errc::integrity, "not a folder", (root / folder).string());
    }
  }
  return {};
}

/// Only ENOENT is a no: what cannot be looked at must not be made anew.
Result<bool> is_there(const std::filesystem::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) return true;
  if (errno == ENOENT) return false;
  return fail_errno(errno, "cannot stat", path.string());
}

/// An empty store; its oci-layout comes last and makes it one. An index that is there already is
/// another process's, and may name a bundle.
Result<void> make_store(const std::filesystem::path& root) {
  if (auto done = make_folders(root / "blobs" / "sha256"); !done) return done;
  // Linked, not renamed: it replaces none.
  const std::filesystem::path temporary = root / (".index.json." + std::to_string(::getpid()));
  const auto written = write_file_atomic(temporary, index_bytes({}));
  const int linked = ::link(temporary.c_str(), (root / "index.json").c_str()) == 0 ? 0 : errno;
  ::unlink(temporary.c_str());
  if (!written) return written;
  if (linked != 0 && linked != EEXIST) {
    return fail_errno(linked, "cannot create", (root / "index.json").string());
  }
  for (const auto& folder : {root / "blobs", root.parent_path()}) {
    if (folder.empty()) continue;
    if (auto done = sync_folder(folder); !done) return done;
  }
  return write_file_atomic(root / "oci-layout", kLayoutBytes);
}

}  // namespace

// ---- writing ----------------------------------------------------------------------------------

BlobWriter::BlobWriter(BlobWriter&& other) noexcept
    : folder_(std::move(other.folder_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::move(other.fd_)),
      buffer_(std::move(other.buffer_)),
      hash_(std::move(other.hash_)),
      digest_(other.digest_),
      size_(other.size_) {}

BlobWriter::~BlobWriter() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> BlobWriter::write(std::span<const std::byte> data) {
  constexpr std::size_t kBuffer = 256U << 10U;
  size_ += data.size();
  if (buffer_.size() + data.size() <= kBuffer) {
    buffer_.insert(buffer_.end(), data.begin(), data.end());
    return {};
  }
  if (auto done = flush(); !done) return done;
  if (data.size() <= kBuffer / 2) {
    buffer_.reserve(kBuffer);
    buffer_.assign(data.begin(), data.end());
    return {};
  }
  hash_.update(data);
  return write_all(fd_.get(), data, temporary_);
}

Result<void> BlobWriter::flush() {
  hash_.update(buffer_);
  auto done = write_all(fd_.get(), buffer_, temporary_);
  buffer_.clear();
  return done;
}

Result<void> BlobWriter::copy_from(int fd, const std::filesystem::path& name, const Sink& sink) {
  auto copied = copy_and_hash(fd, fd_.get(), name, sink);
  if (!copied) return tl::unexpected(copied.error());
  digest_ = copied->digest;
  size_ = copied->size;
  return {};
}

Result<Descriptor> BlobWriter::commit(const std::string& media_type) {
  if (auto done = flush(); !done) return tl::unexpected(done.error());
  const Descriptor descriptor{media_type, digest_ ? *digest_ : hash_.finish(), size_, {}};
  const std::filesystem::path path = folder_ / descriptor.digest.hex();
  // An existing blob is re-hashed, not trusted: one that was damaged is replaced.
  const auto existing = stream_blob(path, descriptor.digest, {});
  if (existing) {
    renew(path, fd_.get());
    return descriptor;
  }
  const Errc why = existing.error().code;
  if (why != Errc::not_found && why != Errc::integrity) return tl::unexpected(existing.error());
  if (::fchmod(fd_.get(), 0444) != 0 || ::fsync(fd_.get()) != 0) {
    return fail_errno(errno, "cannot write", temporary_.string());
  }
  if (::rename(temporary_.c_str(), path.c_str()) != 0) {
    return fail_errno(errno, "cannot rename into the store", path.string());
  }
  temporary_.clear();
  if (auto done = sync_folder(folder_); !done) return tl::unexpected(done.error());
  return descriptor;
}

Result<BlobStore> BlobStore::open(const std::filesystem::path& root) {
  const auto there = is_there(root / "oci-layout");
  if (!there) return tl::unexpected(there.error());
  if (!*there) {
    if (auto done = make_store(root); !done) return tl::unexpected(done.error());
  }
  return open_read_only(root);
}

Result<BlobStore> BlobStore::open_read_only(const std::filesystem::path& root) {
  if (auto good = check_layout(root); !good) return tl::unexpected(good.error());
  return BlobStore(root);
}

Result<BlobWriter> BlobStore::begin() const {
  const std::filesystem::path folder = root_ / "blobs" / "sha256";
  std::string name = (folder / (std::string(kTemporaryPrefix) + "XXXXXX")).string();
  Fd fd(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd.valid()) return fail_errno(errno, "cannot create a file in", folder.string());
  return BlobWriter(folder, name, std::move(fd));
}

Result<Descriptor> BlobStore::add_bytes(std::string_view content, const std::string& media_type) {
  auto writer = begin();
  if (!writer) return tl::unexpected(writer.error());
  if (auto done = writer->write(std::as_bytes(std::span(content))); !done) {
    return tl::unexpected(done.error());
  }
  return writer->commit(media_type);
}

Result<Descriptor> BlobStore::add_file(const std::filesystem::path& file,
                                       const std::string& media_type, const Sink& sink) {
  auto fd = open_read(file);
  if (!fd) return tl::unexpected(fd.error());
  struct stat before {};
  if (::fstat(fd->get(), &before) != 0) return fail_errno(errno, "cannot stat", file.string());
  if (!S_ISREG(before.st_mode)) {
    return fail(Errc::invalid_input, "not a plain file", file.string());
  }
  auto writer = begin();
  if (!writer) return tl::unexpected(writer.error());
  if (auto done = writer->copy_from(fd->get(), file, sink); !done) {
    return tl::unexpected(done.error());
  }
  struct stat after {};
  struct stat by_name {};
  if (::fstat(fd->get(), &after) != 0 || ::stat(file.c_str(), &by_name) != 0 ||
      !is_same(before, after) || !is_same(before, by_name) ||
      writer->size() != static_cast<std::uint64_t>(before.st_size)) {
    return fail(Errc::integrity, "the file changed while it was read", file.string(),
                "wait until nothing writes to it, then try again");
  }
  return writer->commit(media_type);
}

// ---- reading ----------------------------------------------------------------------------------

std::filesystem::path BlobStore::path_of(const Digest& digest) const {
  return root_ / "blobs" / "sha256" / digest.hex();
}

bool BlobStore::has(const Digest& digest) const {
  struct stat status {};
  return ::lstat(path_of(digest).c_str(), &status) == 0;
}

void BlobStore::touch(const Digest& digest) const {
  ::utimensat(AT_FDCWD, path_of(digest).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

Result<std::uint64_t> BlobStore::stream(const Digest& digest, const Sink& sink) const {
  return stream_blob(path_of(digest), digest, sink);
}

Result<std::string> BlobStore::read(const Digest& digest, std::uint64_t limit) const {
  std::string content;
  const auto size = stream(digest, [&](std::span<const std::byte> piece) -> Result<void> {
    if (content.size() + piece.size() > limit) {
      return fail(Errc::invalid_input, "larger than " + std::to_string(limit) + " bytes",
                  path_of(digest).string());
    }
    content.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return {};
  });
  if (!size) return tl::unexpected(size.error());
  return content;
}

Result<void> BlobStore::verify(const Digest& digest) const {
  const auto size = stream(digest, {});
  if (!size) return tl::unexpected(size.error());
  return {};
}

}  // namespace qualify::store
