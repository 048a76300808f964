#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "qualify/base/error.hpp"
#include "qualify/traces/faults.hpp"
#include "qualify/traces/roots.hpp"

namespace qualify::traces {

inline constexpr const char* kSealName = "seal.json";

struct SealOptions {
  std::filesystem::path to;         ///< folder, made if missing; may hold windows sealed before
  std::int64_t window = 0;          ///< iterations a file; 0 = one file a rank
  bool still_running = false;       ///< seal whole windows only, and no roots; needs a window
  std::vector<std::int64_t> ranks;  ///< only these, and no roots: each node its own; empty = all
  unsigned jobs = 0;                ///< threads; 0 = as many as there are processors
  std::function<void(std::size_t done, std::size_t of)> progress;  ///< ranks; any thread
};

/// What sealing did.
struct Sealed {
  std::size_t ranks = 0;
  std::size_t files_written = 0;
  std::size_t files_kept = 0;      ///< windows that were sealed before
  std::uint64_t rows = 0;          ///< in all files
  std::uint64_t source_bytes = 0;  ///< read now
  std::uint64_t sealed_bytes = 0;
  Faults faults;               ///< not empty: the trace is incomplete and matches nothing
  std::optional<Roots> roots;  ///< null while training runs, and for some of the ranks
};

/// Turns a raw trace into Arrow files, and, when it is over, roots.bin, seal.json and
/// manifest.json. What was sealed before is not read again; a source that is shorter than what was
/// sealed of it is refused. Errors: not_found, io, no_space, invalid_input, refused (another window
/// than before).
[[nodiscard]] Result<Sealed> seal(const std::filesystem::path& folder, const SealOptions& options);

}  // namespace qualify::traces
