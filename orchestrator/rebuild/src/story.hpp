#pragma once

#include "qualify/journal/transcript.hpp"
#include "qualify/rebuild/rebuild.hpp"
#include "salvage.hpp"

namespace qualify::rebuild {

/// "event 12 (attempt.ended, repeat-1, run a)", "record 3 (grant, scale, 1a2b3c4d5e6f)".
[[nodiscard]] std::string words_for(const journal::TranscriptRow& row);

/// The rows that the new database gets, such that it makes sense as a whole; what was salvaged,
/// remade and lost on the way is noted in `result`. `times`: for what has no time of its own.
[[nodiscard]] Rows tell(const journal::Transcript& transcript, const Rows& salvaged,
                        const std::vector<AttemptFolder>& attempts, const run::StatePaths& paths,
                        Rebuilt& result);

}  // namespace qualify::rebuild
