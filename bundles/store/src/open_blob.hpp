#pragma once

#include <filesystem>

#include "qualify/base/error.hpp"
#include "qualify/base/files.hpp"

/// Internal to this module.
namespace qualify::store {

/// Opens a blob for reading: a plain file, not reached through a link in its last part. Its bytes
/// are not checked. Errors: not_found, integrity (a link, a folder, a device), io.
[[nodiscard]] Result<Fd> open_blob(const std::filesystem::path& path);

}  // namespace qualify::store
