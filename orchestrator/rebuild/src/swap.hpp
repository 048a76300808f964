#pragma once

#include "qualify/rebuild/rebuild.hpp"
#include "qualify/run/state.hpp"

namespace qualify::rebuild {

/// The names under which new files are made before they take their place.
[[nodiscard]] std::filesystem::path new_database(const run::StatePaths& paths);
[[nodiscard]] std::filesystem::path new_transcript(const run::StatePaths& paths);

/// Files that an earlier rebuilding put aside, the newest first.
[[nodiscard]] std::vector<std::filesystem::path> set_aside(const run::StatePaths& paths);

/// Puts the new files in place, and notes in `result` under which names the old ones stay.
/// At any moment there is a transcript, old or new, and every old file under one name at least.
[[nodiscard]] Result<void> swap_in(const run::StatePaths& paths, Rebuilt& result);

}  // namespace qualify::rebuild
