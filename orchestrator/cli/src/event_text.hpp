#pragma once

#include <string>

#include "qualify/journal/journal.hpp"

namespace qualify::cli {

/// One event of the journal in words, for whoever watches a run or reads its history.
/// Safe to print: control characters are replaced.
[[nodiscard]] std::string event_text(const journal::Event& event);

}  // namespace qualify::cli
