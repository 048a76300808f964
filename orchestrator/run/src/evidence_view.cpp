#include "evidence_view.hpp"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"

namespace qualify::run {

Result<Json> read_evidence_manifest(const store::BlobStore& store, const Digest& manifest) {
  const auto bytes = store.read(manifest, kLargestRecord);
  if (!bytes) return tl::unexpected(bytes.error());
  return parse_json(*bytes, "evidence " + manifest.brief());
}

EvidenceView::Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

Result<EvidenceView> EvidenceView::create(const store::BlobStore& store, const fs::path& scratch) {
  if (auto made = make_folders(scratch); !made) return tl::unexpected(made.error());
  std::string pattern = (scratch / "view-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    return fail_errno(errno, "cannot create a folder in", scratch.string());
  }
  return EvidenceView(store, std::make_unique<Folder>(Folder{pattern}));
}

Result<void> EvidenceView::add(const std::string& path, const Digest& digest, const Sink& watch) {
  if (watch) {
    if (auto whole = store_->stream(digest, watch); !whole) return tl::unexpected(whole.error());
  } else if (auto whole = store_->verify(digest); !whole) {
    return whole;
  }
  const fs::path link = folder_->path / path;
  if (auto made = make_folders(link.parent_path()); !made) return made;
  std::error_code error;
  fs::create_symlink(fs::absolute(store_->path_of(digest)), link, error);
  if (error) return fail_errno(error.value(), "cannot link", link.string());
  return {};
}

std::string EvidenceView::without_folder(std::string text) const {
  const std::string prefix = folder_->path.string() + "/";
  for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) {
    text.erase(at, prefix.size());
  }
  return text;
}

}  // namespace qualify::run
