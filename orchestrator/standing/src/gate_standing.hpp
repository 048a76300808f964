#pragma once

#include <functional>

#include "counted.hpp"

namespace qualify::standing {

/// Of a gate that runs. `gate`: as it is declared now.
[[nodiscard]] Standing of_running(const policy::Gate& gate, bool declared, const Counted& counted,
                                  Time now);

/// Of a gate that rests on others. `standing_of`: theirs.
[[nodiscard]] Standing of_composite(
    const policy::Gate& gate, const Counted& counted, Time now,
    const std::function<const Standing&(const std::string& gate)>& standing_of);

/// What a waiver makes of it, if there is one that counts.
void apply_waiver(const Counted& counted, Time now, Standing& to);

}  // namespace qualify::standing
