#pragma once

#include <array>

#include "qualify/policy/gate.hpp"
#include "qualify/spec/document.hpp"

namespace qualify::policy {

inline constexpr double kAlpha = 0.05;  ///< one-sided error of a performance gate over its looks
inline constexpr std::array kAllocationNames = {"separate", "same"};
inline constexpr std::array kNodeChoiceNames = {"any", "same", "disjoint"};

/// The one reader of gates, whether a person wrote them or a journal recorded them.
/// All faults at once. Errors: invalid_input.
[[nodiscard]] Result<Qualification> read_gates(const spec::Node& root, const std::string& file);

}  // namespace qualify::policy
