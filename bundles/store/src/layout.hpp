#pragma once

#include <string_view>

/// Names and media types of the store. Source: OCI image-spec 1.1, image-layout.md and manifest.md.
namespace qualify::store {

inline constexpr const char* kLayoutFile = "oci-layout";
inline constexpr const char* kIndexFile = "index.json";
inline constexpr const char* kBlobFolder = "blobs/sha256";
inline constexpr std::string_view kLayoutContent = R"({"imageLayoutVersion":"1.0.0"})";
inline constexpr std::string_view kEmptyIndex =
    R"({"manifests":[],"mediaType":"application/vnd.oci.image.index.v1+json","schemaVersion":2})";

inline constexpr const char* kManifestType = "application/vnd.oci.image.manifest.v1+json";
inline constexpr const char* kArtifactType = "application/vnd.qualify.bundle.v1";
inline constexpr const char* kConfigType = "application/vnd.qualify.bundle.config.v1+json";
inline constexpr const char* kCodeType = "application/vnd.qualify.code.v1.tar";
inline constexpr const char* kFileType = "application/vnd.qualify.file.v1";
inline constexpr const char* kContainerType = "application/vnd.qualify.container.v1";
inline constexpr const char* kTitle = "org.opencontainers.image.title";
inline constexpr const char* kRefName = "org.opencontainers.image.ref.name";

}  // namespace qualify::store
