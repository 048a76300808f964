#include "frontier.hpp"

#include <algorithm>

namespace qualify::traces {

std::vector<std::uint32_t> earliest_arrivals(const std::vector<std::uint32_t>& first,
                                             std::vector<Crossing> crossings) {
  std::vector<std::uint32_t> arrives(first.size(), kNever);
  std::sort(crossings.begin(), crossings.end(), [](const Crossing& a, const Crossing& b) {
    return a.operation != b.operation ? a.operation < b.operation : a.rank < b.rank;
  });
  // Ranges of one operation in the order of their earliest position: most are settled in one pass.
  std::vector<std::pair<std::size_t, std::size_t>> operations;
  for (std::size_t i = 0; i < crossings.size();) {
    std::size_t end = i + 1;
    while (end < crossings.size() && crossings[end].operation == crossings[i].operation) ++end;
    if (end - i > 1) operations.emplace_back(i, end);
    i = end;
  }
  const auto earliest = [&](const std::pair<std::size_t, std::size_t>& range) {
    std::uint32_t at = kNever;
    for (std::size_t i = range.first; i < range.second; ++i) at = std::min(at, crossings[i].enters);
    return at;
  };
  std::stable_sort(operations.begin(), operations.end(),
                   [&](const auto& a, const auto& b) { return earliest(a) < earliest(b); });
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [begin, end] : operations) {
      // Two givers, so that nobody is reached by itself alone.
      std::uint32_t givers[2] = {kNever, kNever};
      for (std::size_t i = begin; i < end; ++i) {
        const Crossing& c = crossings[i];
        if (!c.gives || std::min(first[c.rank], arrives[c.rank]) >= c.enters) continue;
        if (givers[0] == kNever) {
          givers[0] = c.rank;
        } else if (givers[1] == kNever && c.rank != givers[0]) {
          givers[1] = c.rank;
        }
      }
      if (givers[0] == kNever) continue;
      for (std::size_t i = begin; i < end; ++i) {
        const Crossing& c = crossings[i];
        const bool by_another = c.rank != givers[0] || givers[1] != kNever;
        if (!c.takes || !by_another || arrives[c.rank] <= c.leaves) continue;
        arrives[c.rank] = c.leaves;
        changed = true;
      }
    }
  }
  return arrives;
}

}  // namespace qualify::traces
