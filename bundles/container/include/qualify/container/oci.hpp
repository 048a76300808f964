#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "qualify/base/digest.hpp"
#include "qualify/base/error.hpp"
#include "qualify/base/files.hpp"

/// OCI image layouts (image-spec 1.1) that others wrote: as a folder, or as one tar ("OCI
/// archive").
namespace qualify::container {

/// A layout whose blobs are never used without having the digest that their names say: an
/// archive's are all checked at opening, a folder's as they are read. Nothing is unpacked: layers
/// are bytes here, so that no compressed bomb can go off. Files other than oci-layout, index.json
/// and blobs/sha256/<hex> are refused, as are names that are absolute or have "..", links and
/// devices. Thread-safe once open, except that the source must stay.
class OciLayout {
 public:
  /// A tar, uncompressed. Errors: not_found, io, invalid_input (not a layout, compressed),
  /// integrity (a blob does not have its digest, cut short).
  [[nodiscard]] static Result<OciLayout> open_archive(const std::filesystem::path& file);
  /// A folder. Errors: as above; a symbolic link or anything but plain files below blobs/ is
  /// refused.
  [[nodiscard]] static Result<OciLayout> open_folder(const std::filesystem::path& folder);

  [[nodiscard]] const std::string& index() const { return index_; }  ///< bytes of index.json
  [[nodiscard]] const std::map<Digest, std::uint64_t>& blobs() const { return blobs_; }  ///< sizes
  /// Bytes are checked again. Errors: not_found, integrity, invalid_input (over limit), io.
  [[nodiscard]] Result<std::string> read(const Digest& digest,
                                         std::uint64_t limit = 4ULL << 20U) const;
  [[nodiscard]] Result<void> stream(const Digest& digest, const Sink& sink) const;

 private:
  std::filesystem::path source_;
  std::map<Digest, std::uint64_t> offsets_;  ///< in the archive; empty for a folder
  std::map<Digest, std::uint64_t> blobs_;
  std::string index_;
};

/// What an image in a layout consists of.
struct OciImage {
  Digest manifest;  ///< of the one manifest or image index that index.json names
  std::string media_type;
  std::uint64_t size = 0;       ///< bytes of the manifest
  std::vector<Digest> content;  ///< every blob reached from it, itself included, ascending
};

/// Walks index -> (image index ->) manifest -> config and layers; at most 4 levels of indexes and
/// 10,000 descriptors. Errors: invalid_input (no image, several images, unknown media type, nested
/// too deep), integrity (a blob is missing or has another size).
[[nodiscard]] Result<OciImage> find_image(const OciLayout& layout);

/// The image alone, as a tar in one exact form: equal images give equal bytes, whatever else lies
/// in the layout. Errors: those of find_image and the sink.
[[nodiscard]] Result<void> write_oci_archive(const OciLayout& layout, const OciImage& image,
                                             const Sink& sink);

}  // namespace qualify::container
