#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qualify/base/error.hpp"
#include "qualify/traces/event.hpp"

namespace qualify::traces {

enum class NodeKind : std::uint8_t { phase = 1, collectives = 2 };

/// The chain of an iteration's events of one phase, or of its collectives of one class (operation
/// and kind of group), in the order in which the rank recorded them.
struct Node {
  NodeKind kind = NodeKind::phase;
  std::uint32_t name = 0;  ///< index in RankSummary::names
  std::uint32_t rows = 0;
  Hash hash{};
  bool operator==(const Node&) const = default;
};

struct IterationSummary {
  std::int64_t iteration = 0;
  std::uint64_t rows = 0;
  Hash root{};               ///< over the nodes and the order of phases
  std::vector<Node> nodes;   ///< in order of first appearance
  std::uint32_t batch = 0;   ///< sealed: record batch that its first row is in
  std::uint32_t offset = 0;  ///< sealed: row within it. Not part of any hash
};

/// Merkle summary of (part of) one rank's trace. Iterations ascend.
struct RankSummary {
  std::vector<std::string> names;
  std::vector<IterationSummary> iterations;
};

/// Makes one iteration's summary of its rows.
class Summariser {
 public:
  explicit Summariser(RankSummary& to) : to_(to) {}
  void add(const Event& event, const Strings& strings);
  /// Ends the iteration that was added to, if there is one.
  void finish();

 private:
  struct Chain {
    NodeKind kind;
    std::uint32_t name;
    std::uint32_t rows;
    std::string leaves;
  };
  Chain& chain_of(NodeKind kind, std::uint64_t key, const Event& event, const Strings& strings);
  RankSummary& to_;
  std::unordered_map<std::uint64_t, std::uint32_t> names_;  ///< by (kind, texts)
  std::vector<Chain> chains_;  ///< of this iteration; kept, to keep their memory
  std::size_t used_ = 0;
  std::string order_;  ///< of phases: (name, run length)
  std::uint32_t last_phase_ = 0;
  std::uint32_t run_ = 0;
  std::int64_t iteration_ = -1;
  std::uint64_t rows_ = 0;
};

/// The name of an event's class: "all-reduce dp" for op all-reduce in group "dp.5@0,8".
[[nodiscard]] std::string collective_class(const Event& event, const Strings& strings);

/// Bytes for a file's metadata and back. Errors: integrity (not what pack wrote).
[[nodiscard]] std::string pack(const RankSummary& summary);
[[nodiscard]] Result<RankSummary> unpack(std::string_view bytes);

/// Root over a rank's iterations, or over ranks: hash of hashes.
[[nodiscard]] Hash root_of(const RankSummary& summary);

}  // namespace qualify::traces
