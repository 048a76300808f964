#pragma once

#include <string>
#include <string_view>

namespace qualify {

/// As RFC 3629 has it: no overlong forms, no surrogates.
[[nodiscard]] bool is_utf8(std::string_view text);

/// The same text where it is UTF-8; each byte that is not becomes U+FFFD. For bytes of others
/// (names of foreign jobs, lines of a log) that go into a record.
[[nodiscard]] std::string to_utf8(std::string_view text);

/// The text with control characters replaced, safe to print on a terminal.
[[nodiscard]] std::string printable(const std::string& text);

/// The same, with its line breaks: an error's text.
[[nodiscard]] std::string printable_lines(const std::string& text);

/// Text for XML and SVG, in content and in attributes: markup is escaped; control characters, which
/// XML cannot hold, become '?'.
[[nodiscard]] std::string escape_xml(std::string_view text);

}  // namespace qualify
