#pragma once

#include <filesystem>

namespace qualify::run {

/// A claim without its owner. This engine makes none; one of an earlier release created the file
/// and wrote into it afterwards: whoever made it is either about to, or died before it did anything
/// else.
[[nodiscard]] bool is_unnamed_claim(const std::filesystem::path& folder);

}  // namespace qualify::run
