#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "qualify/base/clock.hpp"
#include "qualify/base/error.hpp"

/// What is wrong with the database of a state folder, and its rebuilding from what lies beside it:
/// the transcript first, then the damaged file itself, then the folders of the attempts.
/// docs/decisions/0009-transcript.md has why, and what can be had back from what.
namespace qualify::rebuild {

namespace event {
inline constexpr const char* kRebuilt = "database.rebuilt";  ///< why, salvaged, remade, lost, by
}  // namespace event

/// Reads all of database and transcript, and compares them: every page, every derived state, every
/// signature, the log's hashes and checkpoints, every row against its line. Empty: sound.
/// The folder is not changed. Rows that a killed writer left out of the transcript are no fault:
/// the next writer adds them.
[[nodiscard]] std::vector<Error> inspect(const std::filesystem::path& folder);

struct Rebuilt {
  bool needed = false;                      ///< false: all was sound, and nothing was touched
  std::vector<std::string> why;             ///< what was wrong
  std::map<std::string, std::size_t> rows;  ///< by table, what the database has now
  std::vector<std::string> salvaged;        ///< had from the damaged file, one by one
  std::vector<std::string> remade;          ///< made again from the folders of attempts, one by one
  std::vector<std::string> lost;            ///< could not be had back, one by one
  std::vector<Error> faults;                ///< of the log, as it is now
  std::vector<std::filesystem::path> kept;  ///< what was there before, under its new name
};

/// Makes the database anew where inspect() finds faults, and puts it in place; what was there stays
/// beside it as `….damaged-N`. Killed at any moment it can be given again, and nothing more is
/// lost. Errors: not_found (no state folder), busy (a qualify or a daemon uses the state), io,
/// no_space.
[[nodiscard]] Result<Rebuilt> rebuild(const std::filesystem::path& folder, Time now,
                                      const std::string& by);

}  // namespace qualify::rebuild
