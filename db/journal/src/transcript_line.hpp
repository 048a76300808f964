#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "qualify/base/json.hpp"
#include "qualify/journal/transcript.hpp"

/// One line of a transcript and its text.
namespace qualify::journal {

struct TranscriptLine {
  std::string table;
  Json row;
  LastKeys after;     ///< by table, the last key up to this line
  std::string chain;  ///< hex
};

/// Nothing when it is not the text of a line, whatever its digest.
[[nodiscard]] std::optional<TranscriptLine> parse_line(std::string_view text);
/// Canonical JSON and a line feed.
[[nodiscard]] std::string to_text(const TranscriptLine& line);
/// The digest that the line must state: SHA-256 of the digest before it (hex; nothing for the first
/// line) and the line's canonical JSON without "chain". Hex.
[[nodiscard]] std::string chain_of(const std::string& chain_before, const TranscriptLine& line);
/// The 64 hex digits of "chain" in a line that is otherwise illegible; empty when they are not
/// there.
[[nodiscard]] std::string legible_chain(std::string_view text);

}  // namespace qualify::journal
