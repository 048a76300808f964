#pragma once

#include <cstddef>
#include <optional>

#include "qualify/traces/event.hpp"
#include "qualify/traces/localize.hpp"

/// Two sequences of one rank and iteration, by what events are and not by their number.
/// Internal to this module.
namespace qualify::traces {

struct Divergence {
  std::size_t at_a = 0;  ///< index of the first difference; A's size where A has ended
  std::size_t at_b = 0;
  Difference difference = Difference::value;
  std::uint64_t differing = 0;  ///< events that are not equal to their counterpart, or have none
};

/// Null: equal. Both with the same Strings.
[[nodiscard]] std::optional<Divergence> first_divergence(const Events& a, const Events& b,
                                                         const Strings& strings);

}  // namespace qualify::traces
