#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "qualify/base/json.hpp"
#include "qualify/store/blob_store.hpp"

namespace qualify::run {

/// Largest manifest, and largest record of an attempt's nodes, that is read at once.
inline constexpr std::uint64_t kLargestRecord = 1ULL << 30U;

/// The manifest of one run's evidence. Errors: integrity, not_found, io.
[[nodiscard]] Result<Json> read_evidence_manifest(const store::BlobStore& store,
                                                  const Digest& manifest);

/// Files of the store by the names they had in the attempt, for readers that go by names: a folder
/// of links, removed again with this object.
class EvidenceView {
 public:
  /// `scratch`: a folder for the view; made where it is missing. Errors: io.
  [[nodiscard]] static Result<EvidenceView> create(const store::BlobStore& store,
                                                   const std::filesystem::path& scratch);
  EvidenceView(EvidenceView&&) noexcept = default;
  EvidenceView& operator=(EvidenceView&&) = delete;

  /// Hashes the blob again, and shows it as `path`. `watch` sees its bytes, and its error ends the
  /// reading. Errors: integrity, not_found, io, those of `watch`.
  [[nodiscard]] Result<void> add(const std::string& path, const Digest& digest,
                                 const Sink& watch = {});
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_->path; }
  /// Names of the view mean nothing to a reader; those of the run do.
  [[nodiscard]] std::string without_folder(std::string text) const;

 private:
  struct Folder {
    std::filesystem::path path;
    ~Folder();
  };
  EvidenceView(const store::BlobStore& store, std::unique_ptr<Folder> folder)
      : store_(&store), folder_(std::move(folder)) {}
  const store::BlobStore* store_;
  std::unique_ptr<Folder> folder_;
};

}  // namespace qualify::run
