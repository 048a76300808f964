#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "handles.hpp"
#include "qualify/base/digest.hpp"

/// Git LFS pointer files (git-lfs specification, version 1). Internal to this module.
namespace qualify::git {

struct LfsPointer {
  Digest digest;
  std::uint64_t size = 0;  ///< bytes
};

/// Longer files are no pointers (the specification's limit).
inline constexpr std::uint64_t kLargestPointer = 1024;

/// Nothing when `content` is no pointer. Errors: refused (a pointer of an unknown form).
[[nodiscard]] Result<std::optional<LfsPointer>> parse_lfs_pointer(std::string_view content);

/// Where git-lfs keeps the object: <lfs.storage or common git folder/lfs>/objects/aa/bb/<hex>.
[[nodiscard]] std::filesystem::path lfs_object(git_repository* repository, const Digest& digest);

}  // namespace qualify::git
