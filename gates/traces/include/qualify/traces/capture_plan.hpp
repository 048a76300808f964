#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qualify/base/error.hpp"
#include "qualify/base/json.hpp"

namespace qualify::traces {

/// L0 summaries of all ranks, L1 device digests, L2 full bytes.
enum class Level : std::uint8_t { L0, L1, L2 };
[[nodiscard]] const char* name_of(Level level);
[[nodiscard]] Result<Level> parse_level(std::string_view text);

/// What a workload is to record: docs/formats/capture-plan.md. Empty lists mean everything.
struct CapturePlan {
  Level level = Level::L0;
  std::vector<std::int64_t> ranks;
  std::int64_t first_iteration = 0;
  std::int64_t last_iteration = INT64_MAX;
  std::vector<std::string> phases;
  std::vector<std::string> sites;  ///< beginnings of names

  bool operator==(const CapturePlan&) const = default;
};

[[nodiscard]] Json to_json(const CapturePlan& plan);
/// Errors: invalid_input (names the member; unknown members are errors).
[[nodiscard]] Result<CapturePlan> parse_capture_plan(const Json& json, const std::string& context);

}  // namespace qualify::traces
