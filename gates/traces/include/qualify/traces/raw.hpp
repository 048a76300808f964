#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "qualify/base/error.hpp"
#include "qualify/traces/event.hpp"
#include "qualify/traces/faults.hpp"
#include "qualify/traces/manifest.hpp"

/// Traces as training writes them: JSON Lines in one of the two public schemas, told by the members
/// of each file's first line (docs/formats/traces.md).
namespace qualify::traces {

/// One rank's files: one (rank_%06d.jsonl), or one an iteration (iter_%07d/rank_%05d.jsonl).
struct RawRank {
  std::int64_t rank = 0;
  struct File {
    std::filesystem::path path;
    std::int64_t iteration = -1;  ///< by its folder's name; -1: all
  };
  std::vector<File> files;  ///< iterations ascend
};

struct RawTrace {
  std::filesystem::path folder;
  Manifest manifest;
  std::string manifest_text;   ///< as it stands in the folder
  std::vector<RawRank> ranks;  ///< ascending
  Faults faults;               ///< missing, duplicate and surplus ranks
};

/// Looks into `folder`, and into its `traces` where it has no rank files of its own.
/// Errors: not_found (no rank files), io, invalid_input (manifest).
[[nodiscard]] Result<RawTrace> find_raw(const std::filesystem::path& folder);

/// Missing and surplus ranks, by what the manifest says, else by gaps.
[[nodiscard]] Faults rank_faults(const std::vector<std::int64_t>& ranks, const Manifest& manifest,
                                 const std::string& where);

/// Of a trace whose ranks are not all of one schema.
[[nodiscard]] Fault mixed_schemas(const std::filesystem::path& folder);

/// Where in a rank's files a reading begins or ended.
struct RawPlace {
  std::size_t file = 0;
  std::uint64_t byte = 0;           ///< of a line's first byte
  std::uint64_t line = 1;           ///< its number
  std::int64_t last_sequence = -1;  ///< of the records before
};

struct RawReading {
  RawPlace from;
  std::int64_t to_iteration = INT64_MAX;  ///< reading ends before the first record of a later one
  bool still_written = false;             ///< a last line that is cut off is no fault
};

/// What was found on the way.
struct RawEnd {
  std::string schema;  ///< "trace-pr6610", "trace-fork"; empty: no record
  Faults faults;       ///< the first 20, and one line on how many more
};

/// Rows in the rank's order; `place` is where the row's record begins. False stops the reading.
using EachEvent = std::function<bool(const Event&, const RawPlace& place)>;

/// `end` is filled as reading goes on. Errors: not_found, io. What is wrong with records are
/// faults: reading goes on behind them.
[[nodiscard]] Result<void> read_raw(const RawRank& rank, const Manifest& manifest,
                                    const RawReading& reading, Strings& strings, RawEnd& end,
                                    const EachEvent& each);

}  // namespace qualify::traces
