#include "rank_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>

namespace qualify::traces {

namespace {

Place place_of(std::int64_t rank, const Event& event, const Strings& strings) {
  Place place;
  place.rank = rank;
  place.iteration = event.iteration;
  place.phase = strings.text(event.phase);
  place.site = strings.text(event.site);
  place.op = strings.text(event.op);
  place.kind = name_of(event.kind);
  if (event.role != Role::none) place.role = name_of(event.role);
  const std::string_view group = strings.text(event.group);
  place.group = group.substr(0, group.find('@'));
  place.group_seq = event.group_seq;
  place.microbatch = event.microbatch;
  place.vpp_chunk = event.vpp_chunk;
  place.peer = event.peer;
  place.occurrence = event.occurrence;
  place.rank_seq = event.rank_seq;
  return place;
}

/// What an event measured, for people: "1.25 (0x3fa00000)", "0a1b2c3d4e5f", "recorded".
std::string shown(const Event& event, const Strings& strings) {
  std::string text;
  switch (event.value_type) {
    case ValueType::float32: {
      float value = 0;
      std::memcpy(&value, &event.value_bits, sizeof value);
      text = fmt::format("{} (0x{:08x})", value, event.value_bits);
      break;
    }
    case ValueType::float64: {
      double value = 0;
      std::memcpy(&value, &event.value_bits, sizeof value);
      text = fmt::format("{} (0x{:016x})", value, event.value_bits);
      break;
    }
    case ValueType::int64:
      text = std::to_string(static_cast<std::int64_t>(event.value_bits));
      break;
    case ValueType::boolean:
      text = event.value_bits != 0 ? "true" : "false";
      break;
    case ValueType::text:
      text = fmt::format("text {:016x}", event.value_bits);
      break;
    case ValueType::none:
      break;
  }
  if (event.has_digest()) {
    std::array<std::uint8_t, 8> raw;
    std::memcpy(raw.data(), &event.digest_lo, raw.size());
    std::string digest;
    for (std::size_t i = 0; i < 6; ++i) digest += fmt::format("{:02x}", raw[i]);
    std::memcpy(raw.data(), &event.digest_hi, raw.size());
    text += fmt::format("{}{}:{}", text.empty() ? "" : " ", name_of(event.algorithm), digest);
    for (std::size_t i = 0; i < 2; ++i) text += fmt::format("{:02x}", raw[i]);
  }
  if (event.shape != 0) text += fmt::format(" [{}]", strings.text(event.shape));
  return text.empty() ? "recorded" : text;
}

bool has_value(const Event& event) {
  return event.has_digest() || event.value_type != ValueType::none;
}

bool same_operation(const Event& a, const Event& b) {
  return a.site == b.site && a.phase == b.phase && a.op == b.op && a.group == b.group &&
         a.group_seq == b.group_seq && a.microbatch == b.microbatch && a.peer == b.peer &&
         a.vpp_chunk == b.vpp_chunk;
}

/// Of an operation between ranks: the same number on each. Groups without a name or number are told
/// apart by where they stand.
std::uint64_t operation_of(const Event& event, const Strings& strings) {
  Event key;
  key.group = event.group;
  key.site = event.group_seq >= 0 ? 0 : event.site;
  key.phase = event.group_seq >= 0 ? 0 : event.phase;
  key.microbatch = event.group_seq >= 0 ? -1 : event.microbatch;
  key.kind = event.kind;
  key.op = event.kind == Kind::p2p ? 0 : event.op;
  const std::uint64_t number = event.group_seq >= 0
                                   ? static_cast<std::uint64_t>(event.group_seq)
                                   : std::uint64_t{event.occurrence} | (1ULL << 63U);
  return identity(key, strings, false) ^ (number * 0x9E3779B97F4A7C15U);
}

std::vector<Crossing> crossings_of(const Events& events, const Strings& strings) {
  std::vector<Crossing> found;
  std::unordered_map<std::uint64_t, std::size_t> open;  ///< by operation: place in `found`
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    if (event.kind != Kind::collective && event.kind != Kind::p2p) continue;
    const auto at = static_cast<std::uint32_t>(i);
    Crossing crossing;
    crossing.operation = operation_of(event, strings);
    const auto [known, fresh] = open.try_emplace(crossing.operation, found.size());
    const bool input = event.role == Role::input || event.role == Role::send;
    if (fresh) {
      crossing.enters = input ? at + 1 : at;
      crossing.leaves = input ? kNever : at;
      crossing.gives = event.role != Role::recv;
      crossing.takes = event.role != Role::send;
      found.push_back(crossing);
      continue;
    }
    Crossing& earlier = found[known->second];
    if (input) {
      earlier.enters = at + 1;
      earlier.gives = true;
    } else {
      earlier.leaves = std::min(earlier.leaves, at);
      earlier.takes = true;
    }
  }
  for (Crossing& crossing : found) {
    if (crossing.leaves == kNever) crossing.leaves = crossing.enters;  // only inputs were recorded
  }
  return found;
}

std::vector<std::string> different_chains(const TraceSet::Iteration& a,
                                          const TraceSet::Iteration& b) {
  std::set<std::string> of_b;
  const auto text = [](const TraceSet::Iteration& of, const Node& node) {
    return of.names[node.name] + '\0' + std::to_string(static_cast<int>(node.kind)) +
           std::string(reinterpret_cast<const char*>(node.hash.data()), node.hash.size());
  };
  for (const Node& node : b.summary.nodes) of_b.insert(text(b, node));
  std::vector<std::string> chains;
  for (const Node& node : a.summary.nodes) {
    if (!of_b.contains(text(a, node))) chains.push_back(a.names[node.name]);
  }
  return chains;
}

FirstDifference describe(std::int64_t rank, const Divergence& divergence, const Events& a,
                         const Events& b, const Strings& strings) {
  FirstDifference first;
  first.divergence = divergence;
  const std::size_t at = divergence.at_a;
  const bool from_b = divergence.difference == Difference::inserted || at >= a.size();
  first.event = from_b ? b[divergence.at_b] : a[at];
  first.place = place_of(rank, first.event, strings);
  first.group_text = strings.text(first.event.group);
  const auto side = [&](const Events& events, std::size_t index) {
    if (index >= events.size()) return std::string("the iteration has ended");
    return divergence.difference == Difference::value ||
                   divergence.difference == Difference::permutation ||
                   divergence.difference == Difference::shape ||
                   divergence.difference == Difference::nan_payload
               ? shown(events[index], strings)
               : std::string(strings.text(events[index].site)) + ": " +
                     shown(events[index], strings);
  };
  first.a = side(a, at);
  first.b = side(b, divergence.at_b);
  for (std::size_t i = std::min(at, a.size()); i-- > 0;) {
    if (!has_value(a[i])) continue;
    first.last_equal = place_of(rank, a[i], strings);
    first.own_input_equal = a[i].role == Role::input && first.event.role == Role::output &&
                            same_operation(a[i], first.event);
    break;
  }
  return first;
}

}  // namespace

RankReport report_rank(const TraceSet& a, std::size_t a_index, const TraceSet& b,
                       std::size_t b_index, std::int64_t iteration, Strings& strings) {
  RankReport report;
  report.rank_index = a_index;
  const auto in_a = a.read(a_index, iteration, strings);
  if (!in_a) {
    report.error = in_a.error();
    return report;
  }
  const auto in_b = b.read(b_index, iteration, strings);
  if (!in_b) {
    report.error = in_b.error();
    return report;
  }
  report.own_events = in_a->events.size();
  report.events = in_a->events.size() + in_b->events.size();
  const auto divergence = first_divergence(in_a->events, in_b->events, strings);
  report.crossings = crossings_of(in_a->events, strings);
  if (!divergence) return report;
  const std::int64_t rank = a.roots().ranks[a_index];
  const std::size_t at = divergence->at_a;
  if (at < in_a->events.size() && divergence->at_b < in_b->events.size()) {
    const Event& x = in_a->events[at];
    const Event& y = in_b->events[divergence->at_b];
    if (x.algorithm != y.algorithm && x.site == y.site && x.has_digest() && y.has_digest()) {
      report.error =
          Error{Errc::refused,
                fmt::format("digests of different algorithms: {} in A, {} in B",
                            name_of(x.algorithm), name_of(y.algorithm)),
                fmt::format("rank {}, iteration {}, {}", rank, iteration, strings.text(x.site)),
                "record both runs under one capture plan",
                {}};
      return report;
    }
  }
  report.chains = different_chains(*in_a, *in_b);
  report.first = describe(rank, *divergence, in_a->events, in_b->events, strings);
  return report;
}

}  // namespace qualify::traces
