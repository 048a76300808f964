#pragma once

#include <string>
#include <vector>

namespace qualify::traces {

/// A flaw in what was recorded or kept. Whoever has one is never equal to anything.
/// Codes: "truncated", "malformed", "sequence-gap", "duplicate-key", "mixed-schema",
/// "missing-rank", "surplus-rank", "duplicate-rank", "wrong-rank", "no-events", "unsealed".
struct Fault {
  std::string code;
  std::string message;
  std::string where;  ///< "file:line", a file, or a folder
};
using Faults = std::vector<Fault>;

}  // namespace qualify::traces
