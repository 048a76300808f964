#pragma once

#include <span>
#include <string>

#include "qualify/base/files.hpp"
#include "qualify/store/blob_store.hpp"

namespace qualify::store {

/// A blob that is still being written: nobody sees it before commit(), and nothing of it stays when
/// it is destroyed uncommitted. Not thread-safe; the store outlives it.
class BlobWriter {
 public:
  /// Errors: io, no_space.
  [[nodiscard]] static Result<BlobWriter> begin(const BlobStore& store);
  BlobWriter(BlobWriter&& other) noexcept;
  BlobWriter& operator=(BlobWriter&&) = delete;
  ~BlobWriter();

  [[nodiscard]] Result<void> write(std::span<const std::byte> piece);
  [[nodiscard]] Result<Descriptor> commit(const std::string& media_type);

 private:
  BlobWriter(const BlobStore& store, Fd fd, std::string temporary)
      : store_(&store), fd_(std::move(fd)), temporary_(std::move(temporary)) {}
  const BlobStore* store_;
  Fd fd_;
  std::string temporary_;
  Sha256 hash_;
  std::uint64_t size_ = 0;
};

}  // namespace qualify::store
