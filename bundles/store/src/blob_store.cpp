#include "qualify/store/blob_store.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "layout.hpp"
#include "qualify/base/files.hpp"
#include "qualify/base/json.hpp"
#include "qualify/store/blob_writer.hpp"

namespace qualify::store {

namespace {

Result<void> check_layout(const fs::path& root) {
  const auto text = read_file(root / kLayoutFile, 4096);
  if (!text) {
    return fail(text.error().code == Errc::not_found ? Errc::not_found : Errc::io,
                "no store (an OCI image layout) is there", root.string(), "qualify init makes one");
  }
  if (*text != kLayoutContent) {
    return fail(Errc::integrity, "not an OCI image layout of version 1.0.0",
                (root / kLayoutFile).string());
  }
  return {};
}

}  // namespace

Result<BlobStore> BlobStore::open(const std::filesystem::path& root) {
  if (!fs::exists(root / kLayoutFile)) {
    if (fs::exists(root) && !fs::is_empty(root) && !fs::exists(root / "blobs")) {
      return fail(Errc::integrity, "the folder is not empty and no store", root.string());
    }
    if (auto made = make_folders(root / kBlobFolder); !made) return tl::unexpected(made.error());
    // The marker is last: a store without it does not exist and is made again.
    for (const auto& [name, content] :
         {std::pair(kIndexFile, kEmptyIndex), std::pair(kLayoutFile, kLayoutContent)}) {
      if (fs::exists(root / name)) continue;
      if (auto done = write_file_atomic(root / name, content); !done) {
        return tl::unexpected(done.error());
      }
    }
  }
  if (auto good = check_layout(root); !good) return tl::unexpected(good.error());
  return BlobStore(root);
}

Result<BlobStore> BlobStore::open_read_only(const std::filesystem::path& root) {
  if (auto good = check_layout(root); !good) return tl::unexpected(good.error());
  return BlobStore(root);
}

Result<Descriptor> BlobStore::add_bytes(std::string_view content, const std::string& media_type) {
  auto writer = BlobWriter::begin(*this);
  if (!writer) return tl::unexpected(writer.error());
  if (auto done = writer->write(std::as_bytes(std::span(content))); !done) {
    return tl::unexpected(done.error());
  }
  return writer->commit(media_type);
}

Result<Descriptor> BlobStore::add_file(const std::filesystem::path& file,
                                       const std::string& media_type) {
  const auto status_of = [&](struct stat& status) -> Result<void> {
    if (::stat(file.c_str(), &status) == 0) return {};
    return fail_errno(errno, "cannot look at", file.string());
  };
  struct stat before {};
  struct stat after {};
  if (auto done = status_of(before); !done) return tl::unexpected(done.error());
  if (!S_ISREG(before.st_mode)) {
    return fail(Errc::invalid_input, "not a regular file", file.string());
  }
  auto writer = BlobWriter::begin(*this);
  if (!writer) return tl::unexpected(writer.error());
  const auto size =
      read_stream(file, [&](std::span<const std::byte> piece) { return writer->write(piece); });
  if (!size) return tl::unexpected(size.error());
  if (auto done = status_of(after); !done) return tl::unexpected(done.error());
  const bool changed = *size != static_cast<std::uint64_t>(after.st_size) ||
                       before.st_size != after.st_size || before.st_ino != after.st_ino ||
                       before.st_mtim.tv_sec != after.st_mtim.tv_sec ||
                       before.st_mtim.tv_nsec != after.st_mtim.tv_nsec;
  if (changed) {
    return fail(Errc::integrity, "the file changed while it was read", file.string(),
                "stop whatever writes it and try again");
  }
  return writer->commit(media_type);
}

Result<std::string> BlobStore::read(const Digest& digest, std::uint64_t limit) const {
  auto content = read_file(path_of(digest), limit);
  if (!content) {
    if (content.error().code == Errc::not_found) {
      return fail(Errc::not_found, "no blob " + digest.str(), root_.string());
    }
    return content;
  }
  if (sha256(*content) != digest) {
    return fail(Errc::integrity, "the blob's bytes do not have its digest",
                path_of(digest).string());
  }
  return content;
}

std::filesystem::path BlobStore::path_of(const Digest& digest) const {
  return root_ / kBlobFolder / digest.hex();
}

bool BlobStore::has(const Digest& digest) const {
  return fs::exists(path_of(digest));
}

Result<void> BlobStore::verify(const Digest& digest) const {
  const fs::path path = path_of(digest);
  if (!fs::is_regular_file(fs::symlink_status(path))) {
    return fail(fs::exists(fs::symlink_status(path)) ? Errc::integrity : Errc::not_found,
                "no regular file holds blob " + digest.str(), path.string());
  }
  const auto hashed = hash_file(path);
  if (!hashed) return tl::unexpected(hashed.error());
  if (hashed->digest != digest) {
    return fail(Errc::integrity, "the blob's bytes do not have its digest", path.string());
  }
  return {};
}

Result<BlobWriter> BlobWriter::begin(const BlobStore& store) {
  std::string temporary = (store.root() / kBlobFolder / ".new-XXXXXX").string();
  Fd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) return fail_errno(errno, "cannot add to the store", store.root().string());
  return BlobWriter(store, std::move(fd), temporary);
}

BlobWriter::BlobWriter(BlobWriter&& other) noexcept
    : store_(other.store_),
      fd_(std::move(other.fd_)),
      temporary_(std::move(other.temporary_)),
      hash_(std::move(other.hash_)),
      size_(other.size_) {
  other.temporary_.clear();
}

BlobWriter::~BlobWriter() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> BlobWriter::write(std::span<const std::byte> piece) {
  hash_.update(piece);
  size_ += piece.size();
  return write_all(fd_.get(), piece, temporary_);
}

Result<Descriptor> BlobWriter::commit(const std::string& media_type) {
  const Descriptor descriptor{media_type, hash_.finish(), size_, {}};
  const fs::path target = store_->path_of(descriptor.digest);
  // An existing blob is re-hashed, not trusted; a damaged one is replaced by what was just read.
  if (store_->has(descriptor.digest) && store_->verify(descriptor.digest)) return descriptor;
  if (::fchmod(fd_.get(), 0444) != 0 || ::fsync(fd_.get()) != 0) {
    return fail_errno(errno, "cannot add to the store", temporary_);
  }
  if (::rename(temporary_.c_str(), target.c_str()) != 0) {
    return fail_errno(errno, "cannot add to the store", target.string());
  }
  temporary_.clear();
  if (auto synced = sync_folder(target.parent_path()); !synced) {
    return tl::unexpected(synced.error());
  }
  return descriptor;
}

}  // namespace qualify::store
