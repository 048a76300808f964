#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// What ranks recorded of their training: sealed, compared by roots, and localised to the first
/// event at which two runs part. docs/formats/sealed-traces.md has the formats.
/// Nothing here has shared state; one object is used by one thread at a time.
namespace qualify::traces {

/// 128 bits of a SHA-256: the first 16 bytes.
using Hash = std::array<std::uint8_t, 16>;
[[nodiscard]] Hash hash128(std::string_view bytes);

enum class Kind : std::uint8_t {
  metric,
  phase,
  collective,
  p2p,
  tensor,
  state,
  rng,
  data,
  control
};
enum class Role : std::uint8_t { none, input, output, send, recv };
/// How much of a value its digest or bits cover.
enum class Coverage : std::uint8_t { none, scalar, sampled, full };
/// `device`: two position-sensitive 64-bit lanes; `sample`: over part of the bytes, or unknown.
enum class Algorithm : std::uint8_t { none, sha256, device, sample };
enum class ValueType : std::uint8_t { none, float32, float64, int64, boolean, text };

[[nodiscard]] const char* name_of(Kind kind);
[[nodiscard]] const char* name_of(Role role);
[[nodiscard]] const char* name_of(Coverage coverage);
[[nodiscard]] const char* name_of(Algorithm algorithm);
[[nodiscard]] const char* name_of(ValueType type);
template <class Enum>
[[nodiscard]] std::optional<Enum> parse_name(std::string_view text);
inline constexpr std::size_t kKinds = 9;
inline constexpr std::size_t kRoles = 5;
inline constexpr std::size_t kCoverages = 4;
inline constexpr std::size_t kAlgorithms = 4;
inline constexpr std::size_t kValueTypes = 6;

/// Texts by number, number 0 the empty one. Each text keeps its hash, for leaves.
class Strings {
 public:
  Strings();
  [[nodiscard]] std::uint32_t id(std::string_view text);
  [[nodiscard]] std::string_view text(std::uint32_t id) const { return texts_[id].text; }
  [[nodiscard]] const Hash& hash(std::uint32_t id) const { return texts_[id].hash; }
  [[nodiscard]] std::size_t size() const { return texts_.size(); }

 private:
  struct Entry {
    std::string text;
    Hash hash;
  };
  std::deque<Entry> texts_;  ///< places that never move: the keys below are views of them
  std::unordered_map<std::string_view, std::uint32_t> ids_;
};

inline constexpr std::uint16_t kSkipped = 1;
inline constexpr std::uint16_t kRecompute = 2;
inline constexpr std::uint16_t kCudaGraph = 4;
inline constexpr std::int64_t kNoTime = INT64_MIN;

/// One row. Texts are numbers of a Strings; -1 stands for null in group_seq, bytes, microbatch,
/// peer and vpp_chunk.
struct Event {
  std::int64_t iteration = 0;
  std::int64_t rank_seq = 0;  ///< place in the rank's own sequence; rows of one record share it
  std::int64_t group_seq = -1;
  std::int64_t bytes = -1;
  std::int64_t time_ns = kNoTime;      ///< never part of equality
  std::int64_t duration_ns = kNoTime;  ///< never part of equality
  std::uint64_t value_bits = 0;
  std::uint64_t digest_lo = 0;
  std::uint64_t digest_hi = 0;
  std::uint64_t multiset = 0;           ///< digest that does not see positions
  std::array<std::uint8_t, 16> tail{};  ///< the other half of a SHA-256
  std::uint32_t phase = 0;
  std::uint32_t site = 0;   ///< module path or name, as recorded
  std::uint32_t op = 0;     ///< "all-reduce", "send", …
  std::uint32_t group = 0;  ///< "NAME@RANKS" where the manifest knows the ranks, else "NAME"
  std::uint32_t shape = 0;  ///< "4x8"
  std::uint32_t dtype = 0;
  std::uint32_t occurrence = 0;  ///< of its key in the iteration
  std::int32_t microbatch = -1;
  std::int32_t peer = -1;
  std::int16_t vpp_chunk = -1;
  std::uint16_t flags = 0;
  Kind kind = Kind::control;
  Role role = Role::none;
  Coverage coverage = Coverage::none;
  Algorithm algorithm = Algorithm::none;
  ValueType value_type = ValueType::none;  ///< none: value_bits is null
  bool has_multiset = false;
  [[nodiscard]] bool has_digest() const { return algorithm != Algorithm::none; }
  /// Every member, times too; of the same Strings.
  friend bool operator==(const Event&, const Event&) = default;
};
using Events = std::vector<Event>;

/// What an event is, whatever it measured: equal for two runs' records of one thing. Without the
/// occurrence where `with_occurrence` is false. 64 bits of a mix over texts' hashes, so that events
/// of different Strings compare.
[[nodiscard]] std::uint64_t identity(const Event& event, const Strings& strings,
                                     bool with_occurrence);

/// All that equality sees of an event, times left out: kLeafBytes bytes (docs/formats/).
inline constexpr std::size_t kLeafBytes = 192;
void append_leaf(const Event& event, const Strings& strings, std::string& to);
/// As append_leaf says it, field by field, the occurrence aside.
[[nodiscard]] bool equal_but_occurrence(const Event& a, const Strings& a_strings, const Event& b,
                                        const Strings& b_strings);
[[nodiscard]] bool equal(const Event& a, const Strings& a_strings, const Event& b,
                         const Strings& b_strings);

}  // namespace qualify::traces
