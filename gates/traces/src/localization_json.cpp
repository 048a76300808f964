#include <nlohmann/json.hpp>

#include "qualify/traces/localize.hpp"
#include "qualify/traces/manifest.hpp"

namespace qualify::traces {

namespace {

Json optional(std::int64_t value) {
  return value < 0 ? Json(nullptr) : Json(value);
}
Json optional(const std::string& value) {
  return value.empty() ? Json(nullptr) : Json(value);
}

Json to_json(const Place& place) {
  return {{"rank", place.rank},
          {"iteration", place.iteration},
          {"phase", place.phase},
          {"site", place.site},
          {"op", optional(place.op)},
          {"kind", place.kind},
          {"role", optional(place.role)},
          {"group", optional(place.group)},
          {"group_seq", optional(place.group_seq)},
          {"microbatch", optional(place.microbatch)},
          {"vpp_chunk", optional(place.vpp_chunk)},
          {"peer", optional(place.peer)},
          {"occurrence", place.occurrence},
          {"rank_seq", place.rank_seq}};
}

Json to_json(const Faults& faults) {
  Json list = Json::array();
  for (const Fault& fault : faults) {
    list.push_back({{"code", fault.code}, {"message", fault.message}, {"where", fault.where}});
  }
  return list;
}

Json to_json(const FrontierEvent& event) {
  return {{"place", to_json(event.place)},
          {"ranks", ranks_text(event.ranks)},
          {"groups", event.groups},
          {"difference", name_of(event.difference)},
          {"classification", name_of(event.cause)},
          {"why", event.why},
          {"a", event.a},
          {"b", event.b},
          {"interval",
           {{"last_equal", event.last_equal ? to_json(*event.last_equal) : Json(nullptr)},
            {"first_different", to_json(event.place)},
            {"one_event", event.one_event}}},
          {"chains", event.chains},
          {"differing_events", event.differing},
          {"events", event.events}};
}

}  // namespace

const char* name_of(Difference difference) {
  constexpr const char* names[] = {"value",   "nan-payload", "permutation", "shape",
                                   "dropped", "inserted",    "moved",       "replaced"};
  return names[static_cast<std::size_t>(difference)];
}

const char* name_of(Cause cause) {
  constexpr const char* names[] = {"collective", "op",   "transport", "upstream",   "control-flow",
                                   "routing",    "data", "rng",       "checkpoint", "permutation"};
  return names[static_cast<std::size_t>(cause)];
}

const char* name_of(Outcome outcome) {
  constexpr const char* names[] = {"equal", "differs", "inconclusive"};
  return names[static_cast<std::size_t>(outcome)];
}

Json to_json(const Localization& found) {
  Json frontier = Json::array();
  for (const FrontierEvent& event : found.frontier) frontier.push_back(to_json(event));
  const bool any = !found.frontier.empty();
  return {{"schema_version", 1},
          {"outcome", name_of(found.outcome)},
          {"reasons", found.reasons},
          {"full", found.full},
          {"ranks", found.ranks},
          {"iterations", found.iterations},
          {"differing_iterations", ranks_text(found.differing_iterations)},
          {"differing_ranks", ranks_text(found.differing_ranks)},
          {"followers", ranks_text(found.followers)},
          {"heals", found.heals},
          {"frontier", frontier},
          {"interval", any ? frontier.front()["interval"] : Json(nullptr)},
          {"classification", any ? frontier.front()["classification"] : Json(nullptr)},
          {"capture_plan", found.capture_plan ? to_json(*found.capture_plan) : Json(nullptr)},
          {"capture_reason", optional(found.capture_reason)},
          {"events_read", found.events_read},
          {"faults", {{"a", to_json(found.faults_a)}, {"b", to_json(found.faults_b)}}}};
}

}  // namespace qualify::traces
