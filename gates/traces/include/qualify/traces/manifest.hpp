#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qualify/base/error.hpp"
#include "qualify/base/json.hpp"

namespace qualify::traces {

inline constexpr const char* kManifestName = "manifest.json";

/// Sets of ranks as text: "0-3", "0-3064:8", "1,5,7" or joined by commas. Order is kept.
[[nodiscard]] std::string ranks_text(const std::vector<std::int64_t>& ranks);
/// Errors: invalid_input (bad form, more than a million ranks).
[[nodiscard]] Result<std::vector<std::int64_t>> parse_ranks(std::string_view text);

/// Where a rank stands in the parallel layout.
struct Coordinates {
  std::int64_t tp = 0, pp = 0, vpp = 0, dp = 0, ep = 0, cp = 0;
};

/// What a run says of itself beside its traces; docs/formats/sealed-traces.md. Two runs whose
/// manifests differ in what decides values are not compared.
struct Manifest {
  std::map<std::string, std::string> inputs;  ///< model, data, seed, code, container, environment
  std::int64_t world_size = 0;                ///< 0: not said
  std::vector<Coordinates> coordinates;       ///< by rank; may be empty
  std::map<std::string, std::vector<std::int64_t>> groups;  ///< ordered ranks by name
  std::string capture_level;                                ///< "L0", "L1", "L2" or empty
  std::string capture_plan;                                 ///< its digest, or empty
  std::string digest_algorithm;                             ///< or empty
  std::optional<std::int64_t> resumed_from;                 ///< iteration of the checkpoint
  bool present = false;                                     ///< false: the folder has no manifest
};

/// Errors: invalid_input (names the member).
[[nodiscard]] Result<Manifest> parse_manifest(const Json& json, const std::string& context);
[[nodiscard]] Json to_json(const Manifest& manifest);

/// One line for each member that differs, "seed: 1 against 2"; what `allowed` names is left out.
/// Topology, groups, capture plan and digest algorithm can't be allowed to differ.
[[nodiscard]] std::vector<std::string> differences(const Manifest& a, const Manifest& b,
                                                   const std::vector<std::string>& allowed);

}  // namespace qualify::traces
