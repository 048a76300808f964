#pragma once

#include <vector>

namespace qualify::journal {

/// One file of db/migrations, embedded at build.
struct Migration {
  int number;        ///< user_version after it
  const char* name;  ///< file name
  const char* sql;
};

/// All of them in order, numbered from 1 without gaps.
[[nodiscard]] const std::vector<Migration>& migrations();

}  // namespace qualify::journal
