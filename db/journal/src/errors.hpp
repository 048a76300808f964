#pragma once

#include <filesystem>
#include <string>

#include "qualify/base/error.hpp"

struct sqlite3;

namespace qualify::journal {

/// The error that SQLite reports on this connection, as one of ours. `what` is what was tried.
[[nodiscard]] Unexpected fail_sqlite(sqlite3* db, int code, std::string what,
                                     const std::string& context = {});

/// "QLFY", set by 0001_journal.sql.
inline constexpr std::int64_t kApplicationId = 0x514C4659;
inline constexpr const char* kRebuildHint =
    "rebuild it from what lies beside it with: qualify doctor --rebuild";

[[nodiscard]] Unexpected fail_not_ours(const std::filesystem::path& file);
[[nodiscard]] Unexpected fail_newer(std::int64_t version, const std::filesystem::path& file);

}  // namespace qualify::journal
