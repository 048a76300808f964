#pragma once

/// Media types of bundles. Internal to this module; documented in docs/formats/bundle.md.
namespace qualify::store {

inline constexpr char kManifestType[] = "application/vnd.oci.image.manifest.v1+json";
inline constexpr char kIndexType[] = "application/vnd.oci.image.index.v1+json";
inline constexpr char kBundleType[] = "application/vnd.qualify.bundle.v1";
inline constexpr char kConfigType[] = "application/vnd.qualify.bundle.config.v1+json";
inline constexpr char kCodeType[] = "application/vnd.qualify.bundle.code.v1.tar";
inline constexpr char kFileType[] = "application/vnd.qualify.bundle.config-file.v1";
inline constexpr char kDataType[] = "application/vnd.qualify.bundle.data-manifest.v1+json";
inline constexpr char kSquashfsType[] = "application/vnd.qualify.bundle.container.v1.squashfs";
inline constexpr char kSifType[] = "application/vnd.qualify.bundle.container.v1.sif";
inline constexpr char kOciArchiveType[] = "application/vnd.qualify.bundle.container.v1.oci.tar";

inline constexpr char kTitle[] = "org.opencontainers.image.title";
inline constexpr char kRefName[] = "org.opencontainers.image.ref.name";
inline constexpr char kDataPaths[] = "io.qualify.data-paths";
inline constexpr char kDataPathsDigest[] = "io.qualify.data-paths.digest";

}  // namespace qualify::store
