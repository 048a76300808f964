#include "align.hpp"

#include <cmath>
#include <cstring>
#include <unordered_map>

namespace qualify::traces {

namespace {

bool is_nan(const Event& event) {
  if (event.value_type == ValueType::float32) {
    float value = 0;
    std::memcpy(&value, &event.value_bits, sizeof value);
    return std::isnan(value);
  }
  double value = 0;
  std::memcpy(&value, &event.value_bits, sizeof value);
  return event.value_type == ValueType::float64 && std::isnan(value);
}

/// Of two events that are the same thing.
Difference difference_of(const Event& a, const Event& b) {
  if (a.shape != b.shape || a.dtype != b.dtype || a.bytes != b.bytes) return Difference::shape;
  if (is_nan(a) && is_nan(b)) return Difference::nan_payload;
  const bool digests = a.digest_lo != b.digest_lo || a.digest_hi != b.digest_hi;
  if (digests && a.has_multiset && b.has_multiset && a.multiset == b.multiset)
    return Difference::permutation;
  return Difference::value;
}

using Counts = std::unordered_map<std::uint64_t, std::int64_t>;

/// How often each thing occurs from `from` on, its occurrence aside.
Counts counts_of(const Events& events, std::size_t from, const Strings& strings) {
  Counts counts;
  for (std::size_t i = from; i < events.size(); ++i) ++counts[identity(events[i], strings, false)];
  return counts;
}

std::int64_t count(const Counts& counts, std::uint64_t key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

/// Structure first: what is missing, surplus or elsewhere from here on?
Difference tell(const Events& a, const Events& b, std::size_t at, const Strings& strings) {
  if (at == b.size()) return Difference::dropped;
  if (at == a.size()) return Difference::inserted;
  const std::uint64_t of_a = identity(a[at], strings, false);
  const std::uint64_t of_b = identity(b[at], strings, false);
  const Counts in_a = counts_of(a, at, strings);
  const Counts in_b = counts_of(b, at, strings);
  if (of_a == of_b) {
    // One of several of its kind may be gone: then the next one stands here.
    const auto same = [&](const Event& x, const Event& y) {
      return equal_but_occurrence(x, strings, y, strings);
    };
    if (count(in_a, of_a) > count(in_b, of_a) && at + 1 < a.size() && same(a[at + 1], b[at]))
      return Difference::dropped;
    if (count(in_a, of_a) < count(in_b, of_a) && at + 1 < b.size() && same(a[at], b[at + 1]))
      return Difference::inserted;
    return difference_of(a[at], b[at]);
  }
  const bool a_gone = count(in_b, of_a) < count(in_a, of_a);
  const bool b_new = count(in_a, of_b) < count(in_b, of_b);
  if (a_gone && b_new) return Difference::replaced;
  if (a_gone) return Difference::dropped;
  if (b_new) return Difference::inserted;
  return Difference::moved;
}

/// By identity, order aside: events without a counterpart, and those whose counterpart is another.
std::uint64_t differing_from(const Events& a, const Events& b, std::size_t at,
                             const Strings& strings) {
  std::unordered_map<std::uint64_t, const Event*> in_b;
  for (std::size_t i = at; i < b.size(); ++i) in_b.emplace(identity(b[i], strings, true), &b[i]);
  std::uint64_t differing = 0;
  std::size_t matched = 0;
  for (std::size_t i = at; i < a.size(); ++i) {
    const auto found = in_b.find(identity(a[i], strings, true));
    matched += found != in_b.end() ? 1 : 0;
    if (found == in_b.end() || !equal(a[i], strings, *found->second, strings)) ++differing;
  }
  return differing + (b.size() - at - matched);
}

}  // namespace

std::optional<Divergence> first_divergence(const Events& a, const Events& b,
                                           const Strings& strings) {
  std::size_t at = 0;
  while (at < a.size() && at < b.size() && equal(a[at], strings, b[at], strings)) ++at;
  if (at == a.size() && at == b.size()) return std::nullopt;
  Divergence found;
  found.at_a = found.at_b = at;
  found.difference = tell(a, b, at, strings);
  found.differing = differing_from(a, b, at, strings);
  if (found.difference == Difference::moved)
    found.differing = std::max<std::uint64_t>(1, found.differing);
  return found;
}

}  // namespace qualify::traces
