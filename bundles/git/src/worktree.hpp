#pragma once

#include <string>
#include <vector>

#include "handles.hpp"

/// How a worktree differs from its HEAD. Internal to this module.
namespace qualify::git {

/// One fault a file: changed, staged, conflicting, or flagged assume-unchanged or skip-worktree.
/// `prefix` goes before paths (a submodule's folder and '/'). Never writes the index.
[[nodiscard]] Result<std::vector<Error>> worktree_faults(git_repository* repository,
                                                         const std::string& prefix);

}  // namespace qualify::git
