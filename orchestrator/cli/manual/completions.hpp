#pragma once

#include <string>

#include "command_tree.hpp"

/// Shell completions, complete files for each shell's own folder. They complete commands, options,
/// fixed choices and paths, and run nothing.
namespace qualify::cli::manual {

[[nodiscard]] std::string bash_completion(const Command& program);
[[nodiscard]] std::string zsh_completion(const Command& program);
[[nodiscard]] std::string fish_completion(const Command& program);

}  // namespace qualify::cli::manual
