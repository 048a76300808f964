#include "classify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace qualify::traces {

namespace {

bool mentions(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return text.find(word) != std::string::npos; });
}

bool structural(Difference difference) {
  return difference == Difference::dropped || difference == Difference::inserted ||
         difference == Difference::moved || difference == Difference::replaced;
}

bool routes(const Place& place) {
  return mentions(place.site, {"router", "routing", "topk", "dispatch", "gate"});
}

bool after_resume(const Place& place, const Manifest& manifest) {
  return mentions(place.phase, {"load", "checkpoint", "resume"}) ||
         (manifest.resumed_from && place.iteration == *manifest.resumed_from + 1 &&
          place.kind == "state");
}

void structure(FrontierEvent& to) {
  if (to.place.kind == "control" && routes(to.place)) {
    to.cause = Cause::routing;
    to.why = "a routing decision was recorded on one side only";
    return;
  }
  to.cause = Cause::control_flow;
  switch (to.difference) {
    case Difference::dropped:
      to.why = "A ran it and B did not";
      break;
    case Difference::inserted:
      to.why = "B ran it and A did not";
      break;
    case Difference::moved:
      to.why = "both ran it, in another order";
      break;
    default:
      to.why = "each ran something else here";
  }
}

/// A collective whose result differs and that nothing different went into.
void collective(FrontierEvent& to, const FirstDifference& first, const Neighbours& ask) {
  const auto members = group_ranks(first.group_text, ask.manifest);
  std::vector<std::int64_t> absent;
  for (const std::int64_t rank : members) {
    if (!ask.recorded(rank)) absent.push_back(rank);
  }
  if (!absent.empty()) {
    to.cause = Cause::upstream;
    to.why = "its members on ranks " + ranks_text(absent) + " were not recorded";
    to.one_event = false;
    return;
  }
  to.cause = Cause::collective;
  if (first.own_input_equal) {
    to.one_event = true;
    to.why = "equal inputs and different outputs: the collective itself";
  } else {
    to.why = "nothing different reached any member; inputs of the collective were not recorded";
  }
}

void transport(FrontierEvent& to, const FirstDifference& first, const Neighbours& ask) {
  if (first.event.role != Role::recv) {
    to.cause = Cause::op;
    to.why = "what is sent differs: whatever made it since the last equal boundary";
    return;
  }
  if (first.event.peer >= 0 && !ask.recorded(first.event.peer)) {
    to.cause = Cause::upstream;
    to.why = fmt::format("it was received from rank {}, which was not recorded", first.event.peer);
    return;
  }
  to.cause = Cause::transport;
  to.one_event = true;
  to.why = first.event.peer >= 0
               ? fmt::format("rank {} sent the same; what arrived differs", first.event.peer)
               : "nothing different was sent; what arrived differs";
}

void value(FrontierEvent& to, const FirstDifference& first, const Neighbours& ask) {
  const Place& place = to.place;
  const Kind kind = first.event.kind;
  if (to.difference == Difference::permutation) {
    to.cause = Cause::permutation;
    to.why = "the same values in another order";
    to.one_event = first.own_input_equal;
    return;
  }
  if (after_resume(place, ask.manifest)) {
    to.cause = Cause::checkpoint;
    to.one_event = true;
    to.why = "what was loaded differs before anything was computed from it";
  } else if (kind == Kind::data || mentions(place.phase, {"data"})) {
    to.cause = Cause::data;
    to.one_event = true;
    to.why = "the batch differs";
  } else if (kind == Kind::rng) {
    to.cause = Cause::rng;
    to.one_event = true;
    to.why = "the state of the random numbers differs";
  } else if (routes(place) && (kind == Kind::control || to.difference == Difference::shape)) {
    to.cause = Cause::routing;
    to.why = "a routing decision differs; its input is the last equal boundary or later";
  } else if (kind == Kind::collective) {
    if (first.event.role == Role::input) {
      to.cause = Cause::op;
      to.why =
          "what goes into the collective differs: whatever made it since the last equal boundary";
    } else {
      collective(to, first, ask);
    }
  } else if (kind == Kind::p2p) {
    transport(to, first, ask);
  } else if (kind == Kind::control) {
    to.cause = Cause::control_flow;
    to.why = "a decision of the program differs";
  } else {
    to.cause = Cause::op;
    to.one_event = first.own_input_equal;
    to.why = first.own_input_equal ? "its input is equal and its output differs: the op itself"
                                   : "whatever ran since the last equal boundary";
    if (to.difference == Difference::nan_payload) to.why += "; both are NaN, with other bits";
  }
}

FrontierEvent event_of(const RankReport& report, const Neighbours& ask) {
  const FirstDifference& first = *report.first;
  FrontierEvent event;
  event.place = first.place;
  event.ranks = {first.place.rank};
  if (!first.place.group.empty()) event.groups = {first.place.group};
  event.difference = first.divergence.difference;
  event.a = first.a;
  event.b = first.b;
  event.last_equal = first.last_equal;
  event.chains = report.chains;
  event.differing = first.divergence.differing;
  event.events = report.own_events;
  if (structural(event.difference)) {
    structure(event);
  } else {
    value(event, first, ask);
  }
  return event;
}

/// Sites of the last equal and first different boundary have a module in common:
/// "decoder.layers.7".
std::string common_module(const std::string& a, const std::string& b) {
  std::size_t same = 0;
  while (same < a.size() && same < b.size() && a[same] == b[same]) ++same;
  if (same == a.size() && same == b.size()) return a;
  const bool boundary =
      (same == a.size() && b[same] == '.') || (same == b.size() && a[same] == '.');
  if (boundary) return a.substr(0, same);
  const std::size_t dot = a.rfind('.', same == 0 ? 0 : same - 1);
  return dot == std::string::npos ? std::string() : a.substr(0, dot);
}

}  // namespace

std::vector<std::int64_t> group_ranks(const std::string& group_text, const Manifest& manifest) {
  const std::size_t at = group_text.find('@');
  if (at != std::string::npos) {
    return parse_ranks(std::string_view(group_text).substr(at + 1))
        .value_or(std::vector<std::int64_t>());
  }
  const auto found = manifest.groups.find(group_text);
  return found == manifest.groups.end() ? std::vector<std::int64_t>() : found->second;
}

std::vector<FrontierEvent> frontier_events(const std::vector<const RankReport*>& reports,
                                           const Neighbours& neighbours) {
  using Key = std::tuple<std::string, std::string, std::string, std::string, std::int64_t,
                         std::int64_t, std::int64_t, Difference, Cause, bool>;
  std::map<Key, std::size_t> known;
  std::vector<FrontierEvent> events;
  for (const RankReport* report : reports) {
    FrontierEvent event = event_of(*report, neighbours);
    const Place& p = event.place;
    const Key key(p.phase, p.site, p.op, p.role, p.microbatch, p.vpp_chunk, p.occurrence,
                  event.difference, event.cause, event.one_event);
    const auto [found, fresh] = known.try_emplace(key, events.size());
    if (fresh) {
      events.push_back(std::move(event));
      continue;
    }
    FrontierEvent& earlier = events[found->second];
    earlier.ranks.push_back(p.rank);
    for (const std::string& group : event.groups) {
      if (std::find(earlier.groups.begin(), earlier.groups.end(), group) == earlier.groups.end())
        earlier.groups.push_back(group);
    }
  }
  return events;
}

std::optional<CapturePlan> next_capture(const FrontierEvent& event,
                                        const std::vector<RankReport>& reports,
                                        const Manifest& manifest, std::string& reason) {
  if (event.one_event) {
    reason = "the interval of doubt is one event: nothing finer is needed";
    return std::nullopt;
  }
  Level level = Level::L0;
  for (const RankReport& report : reports) {
    if (!report.first || report.first->place.rank != event.place.rank) continue;
    const Event& first = report.first->event;
    if (first.algorithm == Algorithm::device) level = Level::L1;
    if (first.algorithm == Algorithm::sha256) level = Level::L2;
  }
  if (const auto said = parse_level(manifest.capture_level)) level = std::max(level, *said);
  if (level == Level::L2) {
    reason = "full bytes were recorded already: nothing finer can be";
    return std::nullopt;
  }
  CapturePlan plan;
  plan.level = level == Level::L0 ? Level::L1 : Level::L2;
  std::set<std::int64_t> ranks(event.ranks.begin(), event.ranks.end());
  for (const std::string& group : event.groups) {
    const auto members = group_ranks(group, manifest);
    ranks.insert(members.begin(), members.end());
  }
  if (event.place.peer >= 0) ranks.insert(event.place.peer);
  plan.ranks.assign(ranks.begin(), ranks.end());
  plan.first_iteration = plan.last_iteration = event.place.iteration;
  plan.phases = {event.place.phase};
  std::string module = event.place.site;
  if (event.last_equal) {
    if (event.last_equal->phase != event.place.phase) {
      plan.phases.insert(plan.phases.begin(), event.last_equal->phase);
      module.clear();
    } else {
      module = common_module(event.last_equal->site, event.place.site);
    }
  }
  // A tracer's sums over a phase ("summary.tensor") are of no module, and finer ones have no such
  // name.
  if (module.starts_with("summary")) module.clear();
  if (!module.empty()) plan.sites = {module};
  reason = level == Level::L0 ? "digests of every value between the last equal and the first "
                                "different boundary, on the ranks concerned"
                              : "all bytes around the first different boundary";
  return plan;
}

}  // namespace qualify::traces
