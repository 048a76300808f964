#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "qualify/policy/gate.hpp"

/// A gate in words, from its declaration alone.
namespace qualify::cli {

struct GateText {
  std::vector<std::string> asks;  ///< a sentence each
  std::string runs;               ///< what has to run for it; "none of its own" for composite gates
  std::string closes;             ///< what a pass is
};

[[nodiscard]] GateText describe(const policy::Gate& gate);

/// How many runs its plan has at most; 0 for composite gates.
[[nodiscard]] std::size_t run_count(const policy::Gate& gate);

}  // namespace qualify::cli
