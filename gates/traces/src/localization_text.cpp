#include <fmt/format.h>

#include "qualify/traces/localize.hpp"
#include "qualify/traces/manifest.hpp"

namespace qualify::traces {

namespace {

/// Groups named at most.
constexpr std::size_t kMostShown = 4;

}  // namespace

std::string describe(const Place& place, const std::vector<std::string>& groups) {
  std::string text = place.phase.empty() ? "" : place.phase + ", ";
  text += place.site;
  if (!place.role.empty()) text += " " + place.role;
  if (!place.op.empty()) {
    text += ", " + place.op;
    if (place.group_seq >= 0) text += fmt::format(" #{}", place.group_seq);
    if (groups.size() > kMostShown) {
      text += fmt::format(" of {} groups ({}, …)", groups.size(), groups.front());
    } else if (!groups.empty()) {
      text += " of " + fmt::format("{}", fmt::join(groups, ", "));
    }
  }
  if (place.peer >= 0)
    text += fmt::format(" {} rank {}", place.role == "recv" ? "from" : "to", place.peer);
  if (place.microbatch >= 0) text += fmt::format(", microbatch {}", place.microbatch);
  if (place.vpp_chunk >= 0) text += fmt::format(", chunk {}", place.vpp_chunk);
  if (place.occurrence > 0) text += fmt::format(", occurrence {}", place.occurrence);
  return text;
}

std::string describe(const Place& place) {
  return describe(place,
                  place.group.empty() ? std::vector<std::string>() : std::vector{place.group});
}

std::string describe(const FrontierEvent& event) {
  return fmt::format(
      "iteration {}, {}, {} {} [{}]", event.place.iteration, describe(event.place, event.groups),
      event.ranks.size() == 1 ? "rank" : "ranks", ranks_text(event.ranks), name_of(event.cause));
}

}  // namespace qualify::traces
