#pragma once

#include <git2.h>

namespace qualify::git {

/// Reads the repository's loose objects instead of libgit2, whose reader (1.5) never returns from
/// one that was cut short, as a power cut or a full disk leaves it. What is read is still checked
/// against its name by libgit2. Returns libgit2's codes.
int use_own_loose_reader(git_repository* repository);

}  // namespace qualify::git
