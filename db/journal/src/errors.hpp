#pragma once

#include <string>

#include "qualify/base/error.hpp"

struct sqlite3;

namespace qualify::journal {

/// The error that SQLite reports on this connection, as one of ours. `what` is what was tried.
[[nodiscard]] Unexpected fail_sqlite(sqlite3* db, int code, std::string what,
                                     const std::string& context = {});

}  // namespace qualify::journal
