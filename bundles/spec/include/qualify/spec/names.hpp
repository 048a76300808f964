#pragma once

#include <string_view>

/// What names and paths in a bundle may be: the same rules for the spec that a person writes and
/// for the config of a sealed bundle, which may come from anywhere.
namespace qualify::spec {

/// Letters, digits, '.', '_' and '-', at most 64, starting with a letter or digit: a folder name
/// and a placeholder everywhere.
[[nodiscard]] bool is_name(std::string_view name);

/// Letters, digits and '_', not starting with a digit (POSIX).
[[nodiscard]] bool is_variable_name(std::string_view name);

/// A name in one folder: not empty, "." or "..", no '/' and no control characters.
[[nodiscard]] bool is_file_name(std::string_view name);

/// Relative, '/'-separated, no empty, "." or ".." part.
[[nodiscard]] bool is_inside(std::string_view path);

}  // namespace qualify::spec
