#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "qualify/base/digest.hpp"
#include "qualify/base/error.hpp"
#include "qualify/traces/event.hpp"

namespace qualify::traces {

inline constexpr const char* kRootsName = "roots.bin";

/// What two runs are compared by first: one hash for each rank and iteration, 16 bytes each.
/// All zero where a rank has no such iteration.
struct Roots {
  bool complete = false;                 ///< no faults, training had ended
  Digest manifest;                       ///< of manifest.json; all zero: there is none
  std::int64_t window = 0;               ///< iterations a sealed file; 0 = all
  std::vector<std::int64_t> ranks;       ///< ascending
  std::vector<std::int64_t> iterations;  ///< ascending
  std::vector<Hash> hashes;              ///< by rank, then iteration

  [[nodiscard]] const Hash& at(std::size_t rank, std::size_t iteration) const {
    return hashes[rank * iterations.size() + iteration];
  }
};

/// The whole of roots.bin (docs/formats/sealed-traces.md): header, ranks, iterations, hashes, and a
/// SHA-256 over all before it.
[[nodiscard]] std::string pack_roots(const Roots& roots);
/// Errors: integrity.
[[nodiscard]] Result<Roots> unpack_roots(std::string_view bytes, const std::string& context);
/// Errors: not_found, io, integrity.
[[nodiscard]] Result<Roots> read_roots(const std::filesystem::path& folder);

/// One hash for a whole run.
[[nodiscard]] Hash run_root(const Roots& roots);

/// Name of the file with the window of iterations that `iteration` is in.
[[nodiscard]] std::string sealed_name(std::int64_t rank, std::int64_t iteration,
                                      std::int64_t window);

}  // namespace qualify::traces
