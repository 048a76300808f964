#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "qualify/journal/transcript.hpp"
#include "qualify/run/state.hpp"

namespace qualify::rebuild {

/// By table and key.
using Rows = std::map<std::string, std::map<std::int64_t, journal::TranscriptRow>>;

/// Every row that the damaged files still give, read from private copies: nothing touches them.
/// A row that has not the form of its table is left out. Later files count where earlier ones lack
/// a row.
[[nodiscard]] Rows salvage(const std::vector<std::filesystem::path>& files,
                           const std::filesystem::path& temporary);

/// What the folders of attempts say of one.
struct AttemptFolder {
  std::string qualification;
  std::string gate;
  std::string run;
  int attempt = 0;
  std::string nonce;
  std::string bundle;
};
/// Every attempt that has its job-plan.json, sorted by name.
[[nodiscard]] std::vector<AttemptFolder> attempt_folders(const run::StatePaths& paths);

}  // namespace qualify::rebuild
