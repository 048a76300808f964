#pragma once

#include "qualify/base/json.hpp"
#include "qualify/standing/standing.hpp"

/// Standings as the records that --json prints.
namespace qualify::cli {

[[nodiscard]] Json to_json(const standing::Standing& standing);
[[nodiscard]] Json to_json(const standing::ReleaseStanding& release);

}  // namespace qualify::cli
