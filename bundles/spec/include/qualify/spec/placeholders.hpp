#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qualify/base/error.hpp"

/// Placeholders in launch arguments and environment values: "{code.NAME}", "{config.NAME}",
/// "{data.NAME}", "{container}", "{output}", "{seed}". "{{" and "}}" stand for one brace.
namespace qualify::spec {

/// The text with every placeholder replaced by what `value` returns for its name (the text between
/// the braces). Errors: invalid_input (an unpaired brace, or a name for which `value` has nothing).
[[nodiscard]] Result<std::string> expand_placeholders(
    std::string_view text,
    const std::function<std::optional<std::string>(std::string_view name)>& value);

/// The names used in `text`, in order. Errors: invalid_input (an unpaired brace).
[[nodiscard]] Result<std::vector<std::string>> placeholders_in(std::string_view text);

}  // namespace qualify::spec
