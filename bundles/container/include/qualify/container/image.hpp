#pragma once

#include <filesystem>

#include "qualify/base/error.hpp"

/// Container images as files.
namespace qualify::container {

/// That the file is a squashfs 4.0 image (enroot's .sqsh) of the length that its superblock says.
/// Source: Linux fs/squashfs/squashfs_fs.h, struct squashfs_super_block.
/// Errors: not_found, io, invalid_input, unsupported (another squashfs version).
[[nodiscard]] Result<void> check_squashfs(const std::filesystem::path& file);

/// That the file is a SIF image (Apptainer). Source: sylabs/sif, header layout: 32 bytes launch
/// script, then "SIF_MAGIC". Errors: not_found, io, invalid_input.
[[nodiscard]] Result<void> check_sif(const std::filesystem::path& file);

}  // namespace qualify::container
