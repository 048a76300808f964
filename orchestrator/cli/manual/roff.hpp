#pragma once

#include <string>
#include <string_view>

#include "command_tree.hpp"

namespace qualify::cli::manual {

/// The manual page qualify(1). `version` as in `qualify --version`. Carries no date, so that equal
/// sources give equal bytes.
[[nodiscard]] std::string manual_page(const Command& program, std::string_view version);

/// Markdown to man(7) macros, as much of it as manual texts use: paragraphs, "- " lists, fenced
/// code,
/// "## headings", `code`, **strong**. Anything else stays as it is written.
[[nodiscard]] std::string roff_of_markdown(std::string_view markdown);

/// Text in which nothing is taken for a request or an escape.
[[nodiscard]] std::string roff_escape(std::string_view text);

}  // namespace qualify::cli::manual
