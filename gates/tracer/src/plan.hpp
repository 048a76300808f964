#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qualify/tracer/tracer.h"

namespace qualify::tracer {

/// docs/formats/capture-plan.md, as a tracer needs it.
struct Plan {
  qtrace_level level = QTRACE_L0;
  bool given = false;               ///< false: `level` holds everywhere
  std::vector<std::int64_t> ranks;  ///< sorted; empty: all
  std::int64_t first_iteration = 0;
  std::int64_t last_iteration = INT64_MAX;
  std::vector<std::string> phases;
  std::vector<std::string> sites;
  std::string digest;  ///< "sha256:…" of its canonical bytes

  [[nodiscard]] qtrace_level at(std::int64_t rank, std::int64_t iteration, std::string_view phase,
                                std::string_view site) const;
};

/// Throws std::runtime_error: cannot be read, or is no capture plan.
[[nodiscard]] Plan read_plan(const qtrace_options& options);

[[nodiscard]] const char* name_of(qtrace_level level);

}  // namespace qualify::tracer
