#include "qualify/traces/event.hpp"

#include <cstring>

#include "qualify/base/digest.hpp"

namespace qualify::traces {

namespace {

constexpr std::array<const char*, kKinds> kKindNames = {
    "metric", "phase", "collective", "p2p", "tensor", "state", "rng", "data", "control"};
constexpr std::array<const char*, kRoles> kRoleNames = {"none", "input", "output", "send", "recv"};
constexpr std::array<const char*, kCoverages> kCoverageNames = {"none", "scalar", "sampled",
                                                                "full"};
constexpr std::array<const char*, kAlgorithms> kAlgorithmNames = {"none", "sha256", "device",
                                                                  "sample"};
constexpr std::array<const char*, kValueTypes> kValueTypeNames = {"none",  "float32", "float64",
                                                                  "int64", "boolean", "text"};

template <class Enum, std::size_t N>
std::optional<Enum> find(const std::array<const char*, N>& names, std::string_view text) {
  for (std::size_t i = 0; i < N; ++i) {
    if (text == names[i]) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

/// splitmix64's finaliser (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
/// 2014).
std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

std::uint64_t word(const Hash& hash) {
  std::uint64_t value = 0;
  std::memcpy(&value, hash.data(), sizeof value);
  return value;
}

template <class T>
char* put(char* at, T value) {
  std::memcpy(at, &value, sizeof value);
  return at + sizeof value;
}

/// Everything of a leaf but the texts.
bool same_numbers(const Event& a, const Event& b) {
  return a.iteration == b.iteration && a.group_seq == b.group_seq && a.bytes == b.bytes &&
         a.value_bits == b.value_bits && a.digest_lo == b.digest_lo && a.digest_hi == b.digest_hi &&
         a.multiset == b.multiset && a.tail == b.tail && a.microbatch == b.microbatch &&
         a.peer == b.peer && a.vpp_chunk == b.vpp_chunk && a.flags == b.flags && a.kind == b.kind &&
         a.role == b.role && a.coverage == b.coverage && a.algorithm == b.algorithm &&
         a.value_type == b.value_type && a.has_multiset == b.has_multiset;
}

}  // namespace

Hash hash128(std::string_view bytes) {
  const Digest digest = sha256(bytes);
  Hash hash;
  std::memcpy(hash.data(), digest.bytes().data(), hash.size());
  return hash;
}

const char* name_of(Kind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}
const char* name_of(Role role) {
  return kRoleNames[static_cast<std::size_t>(role)];
}
const char* name_of(Coverage coverage) {
  return kCoverageNames[static_cast<std::size_t>(coverage)];
}
const char* name_of(Algorithm algorithm) {
  return kAlgorithmNames[static_cast<std::size_t>(algorithm)];
}
const char* name_of(ValueType type) {
  return kValueTypeNames[static_cast<std::size_t>(type)];
}

template <>
std::optional<Kind> parse_name<Kind>(std::string_view text) {
  return find<Kind>(kKindNames, text);
}
template <>
std::optional<Role> parse_name<Role>(std::string_view text) {
  return find<Role>(kRoleNames, text);
}
template <>
std::optional<Coverage> parse_name<Coverage>(std::string_view text) {
  return find<Coverage>(kCoverageNames, text);
}
template <>
std::optional<Algorithm> parse_name<Algorithm>(std::string_view text) {
  return find<Algorithm>(kAlgorithmNames, text);
}
template <>
std::optional<ValueType> parse_name<ValueType>(std::string_view text) {
  return find<ValueType>(kValueTypeNames, text);
}

Strings::Strings() {
  (void)id("");
}

std::uint32_t Strings::id(std::string_view text) {
  const auto found = ids_.find(text);
  if (found != ids_.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(texts_.size());
  texts_.push_back({std::string(text), hash128(text)});
  ids_.emplace(texts_.back().text, number);
  return number;
}

std::uint64_t identity(const Event& event, const Strings& strings, bool with_occurrence) {
  std::uint64_t h = mix64(word(strings.hash(event.site)) + 1);
  h = mix64(h ^ word(strings.hash(event.phase)));
  h = mix64(h + word(strings.hash(event.op)));
  h = mix64(h ^ word(strings.hash(event.group)));
  h = mix64(h + ((static_cast<std::uint64_t>(static_cast<std::uint32_t>(event.microbatch)) << 32U) |
                 static_cast<std::uint32_t>(event.peer)));
  h = mix64(h ^ ((static_cast<std::uint64_t>(static_cast<std::uint16_t>(event.vpp_chunk)) << 16U) |
                 (static_cast<std::uint64_t>(event.kind) << 8U) |
                 static_cast<std::uint64_t>(event.role)));
  return with_occurrence ? mix64(h + event.occurrence) : h;
}

void append_leaf(const Event& event, const Strings& strings, std::string& to) {
  const std::size_t begin = to.size();
  to.resize(begin + kLeafBytes);
  char* at = to.data() + begin;
  at = put(at, event.iteration);
  at = put(at, event.group_seq);
  at = put(at, event.bytes);
  at = put(at, event.value_bits);
  at = put(at, event.digest_lo);
  at = put(at, event.digest_hi);
  at = put(at, event.multiset);
  at = put(at, event.tail);
  for (const std::uint32_t text :
       {event.phase, event.site, event.op, event.group, event.shape, event.dtype}) {
    at = put(at, strings.hash(text));
  }
  at = put(at, event.occurrence);
  at = put(at, event.microbatch);
  at = put(at, event.peer);
  at = put(at, event.vpp_chunk);
  at = put(at, event.flags);
  at = put(at, event.kind);
  at = put(at, event.role);
  at = put(at, event.coverage);
  at = put(at, event.algorithm);
  at = put(at, event.value_type);
  at = put(at, static_cast<std::uint8_t>(event.has_multiset));
  put(at, std::uint16_t{0});
}

bool equal_but_occurrence(const Event& a, const Strings& a_strings, const Event& b,
                          const Strings& b_strings) {
  if (!same_numbers(a, b)) return false;
  const auto same = [&](std::uint32_t in_a, std::uint32_t in_b) {
    return &a_strings == &b_strings ? in_a == in_b : a_strings.hash(in_a) == b_strings.hash(in_b);
  };
  return same(a.phase, b.phase) && same(a.site, b.site) && same(a.op, b.op) &&
         same(a.group, b.group) && same(a.shape, b.shape) && same(a.dtype, b.dtype);
}

bool equal(const Event& a, const Strings& a_strings, const Event& b, const Strings& b_strings) {
  return a.occurrence == b.occurrence && equal_but_occurrence(a, a_strings, b, b_strings);
}

}  // namespace qualify::traces
