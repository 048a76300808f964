#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "qualify/traces/event.hpp"
#include "qualify/traces/manifest.hpp"

/// Traces of a training run that never was, in which everything that makes real ones hard is there:
/// parallel groups (tp, pp, dp, ep) whose collectives stand in the trace of every member with one
/// group_seq, point-to-point between pipeline stages, values that really depend on one another (a
/// bit that is planted in one tensor reaches exactly the ranks that training would carry it to).
namespace qualify::test {

struct TraceShape {
  std::int64_t tp = 2, pp = 2, dp = 4, ep = 2;  ///< ep divides dp
  std::int64_t layers = 2;                      ///< a pipeline stage
  std::int64_t microbatches = 2;
  std::int64_t iterations = 4;
  std::int64_t first_iteration = 1;
  std::int64_t buckets = 2;  ///< of gradients
  bool resumed = false;      ///< the first iteration begins with a loaded checkpoint
  bool times = true;
  [[nodiscard]] std::int64_t ranks() const { return tp * pp * dp; }
};

enum class Planted : std::uint8_t {
  nothing,
  tensor_bit,        ///< a kernel writes another bit, and training goes on with it
  healing_bit,       ///< the same, recomputed right afterwards: nothing follows from it
  permuted,          ///< rows of an expert's input in another order
  dropped_event,     ///< a rank does not run an op
  inserted_event,    ///< a rank runs one more
  reordered,         ///< two collectives in the other order on all members
  collective_bit,    ///< all members put in the same, and get another sum
  one_member_bit,    ///< one member gets another result than the others
  transport_bit,     ///< sent well, received otherwise
  routing,           ///< a router decides otherwise, and token counts change
  nan_payload,       ///< NaN on both sides, with other bits
  wrong_data,        ///< another batch
  wrong_rng,         ///< another state of the random numbers
  wrong_checkpoint,  ///< the loaded state is another
};
[[nodiscard]] const char* name_of(Planted planted);

struct Plant {
  Planted what = Planted::nothing;
  std::int64_t iteration = 1;
  std::int64_t rank = 0;   ///< a member where a group is concerned
  std::int64_t layer = 0;  ///< within its stage
  std::int64_t microbatch = 0;
};

[[nodiscard]] traces::Manifest manifest_of(const TraceShape& shape);

/// Calls `each` for every event: iteration by iteration, ranks mixed, each rank's in its own order.
using EachTraceEvent =
    std::function<void(std::int64_t rank, const traces::Event&, const traces::Strings&)>;
void generate_trace(const TraceShape& shape, const std::vector<Plant>& plants,
                    const EachTraceEvent& each);

/// One line of the schema trace-pr6610, without the newline.
void append_json_line(std::int64_t rank, const traces::Event& event, const traces::Strings& strings,
                      std::string& to);

/// Writes the whole trace as JSON Lines and its manifest into a new folder.
void write_trace(const std::filesystem::path& folder, const TraceShape& shape,
                 const std::vector<Plant>& plants = {});

}  // namespace qualify::test
