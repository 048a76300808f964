#pragma once

#include <filesystem>
#include <vector>

#include "qualify/store/bundle.hpp"

/// Bundles as single files: OCI archives that skopeo, oras and registries can carry.
namespace qualify::store {

/// Writes one bundle as an OCI archive in one exact form; every blob is verified while it is
/// copied. The file appears whole or not at all, and is durable. Where data lay on this machine
/// stays here. Errors: not_found, already_exists (the file), integrity, io, no_space.
[[nodiscard]] Result<void> export_bundle(const BlobStore& store, const Digest& digest,
                                         const std::filesystem::path& file);

/// Takes in every bundle of an OCI archive, or of an OCI layout folder, after all of it has been
/// verified; returns their digests. Nothing is visible before that; a bundle that is there already
/// is no error. Errors: not_found, invalid_input (not such an archive, names that leave it, blobs
/// that no bundle names), integrity, io, no_space.
[[nodiscard]] Result<std::vector<Digest>> import_bundles(BlobStore& store,
                                                         const std::filesystem::path& source);

}  // namespace qualify::store
