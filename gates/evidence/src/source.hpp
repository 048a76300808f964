#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qualify/base/digest.hpp"
#include "qualify/evidence/metrics.hpp"

/// What the readers share. A reader turns one file into one Source; merging is merge.cpp's.
namespace qualify::evidence {

/// Iterations beyond this have no exact JSON form and are no training step: a fault.
inline constexpr std::int64_t kMaxIteration = std::int64_t{1} << 53U;

struct Source {
  explicit Source(std::shared_ptr<Spool> values_spool = {}) : spool(std::move(values_spool)) {}
  std::shared_ptr<Spool> spool;  ///< of the whole reading
  std::string format;
  std::string file;       ///< for messages
  std::string order_key;  ///< files of one format are merged in this order: first wall-clock mark
  std::map<std::string, Series> series;
  std::vector<ReadFault> faults;
  std::vector<Artefact> artefacts;
  Sha256 marks;
  std::string mark_buffer;  ///< not yet in `marks`: hashing a few bytes at a time is slow
  std::size_t mark_count = 0;

  Series& series_named(const std::string& name);
  void mark(std::string_view text);  ///< a line of what tells this run's times from another's
  void mark_bytes(std::string_view bytes);
  [[nodiscard]] std::string finish_marks();  ///< once: hex digest
  void fault(std::string code, const std::string& message, const std::string& place,
             const std::string& metric = {}, std::optional<std::int64_t> iteration = {});
  /// Records a value. The same step twice is a fault, unless `restarted` says that the run went
  /// back to a checkpoint: then only a different value is one.
  void add(Series& to, std::int64_t iteration, const Scalar& value, const std::string& place,
           bool restarted = false);
  /// The same, for values that nearly always come in order: `place` says where it is only when a
  /// fault needs it.
  template <class Place>
  requires std::invocable<Place>
  void add(Series& to, std::int64_t iteration, const Scalar& value, const Place& place,
           bool restarted = false) {
    const bool good = iteration >= 0 && iteration <= kMaxIteration;
    if (good && to.values.append_later(iteration, value)) return;
    add(to, iteration, value, place(), restarted);
  }
};

/// Text that others wrote as valid UTF-8: bytes that are none, and NUL, become "\\xNN".
[[nodiscard]] std::string readable(std::string_view text);

/// The finite number at the front of [text, end), as parse_number() reads it, into `to` (whose text
/// is empty). Returns where it ends; null when none begins there.
[[nodiscard]] const char* take_number(const char* text, const char* end, Scalar& to);
[[nodiscard]] Scalar of_float32(float value);
[[nodiscard]] Scalar of_float64(double value);
[[nodiscard]] Scalar of_integer(std::int64_t value);
[[nodiscard]] Scalar of_digest(std::string_view hex, Precision precision);

/// "lm_loss" -> "lm loss", "num_zeros" -> "num-zeros": what tables call Megatron's tags.
[[nodiscard]] std::string tag_of(std::string_view column);

/// Names of the column or key that holds the iteration.
[[nodiscard]] bool names_iteration(std::string_view name);
/// Names of a column or key that holds a time of day.
[[nodiscard]] bool names_time(std::string_view name);

/// The first bytes of a file, enough to tell its format.
inline constexpr std::size_t kHead = 65536;

/// One file for a reader.
struct Input {
  const std::filesystem::path& path;
  std::string_view head;  ///< its first bytes
  bool forced = false;    ///< a person says that it is in this format
  std::shared_ptr<Spool> spool;
};

/// Null: the file is not in this format. A file that is, but is damaged, gives faults.
using Read = Result<std::optional<Source>> (*)(const Input& input);

struct Format {
  const char* name;
  Read read;
};

Result<std::optional<Source>> read_event_file(const Input& input);
Result<std::optional<Source>> read_megatron_log(const Input& input);
Result<std::optional<Source>> read_golden(const Input& input);
Result<std::optional<Source>> read_json_lines(const Input& input);
Result<std::optional<Source>> read_pr6610_trace(const Input& input);
Result<std::optional<Source>> read_fork_trace(const Input& input);
Result<std::optional<Source>> read_csv(const Input& input);

/// A folder with latest_checkpointed_iteration.txt, or one called iter_…
[[nodiscard]] bool is_checkpoint(const std::filesystem::path& folder);
Result<Source> read_checkpoint(const std::filesystem::path& folder, std::shared_ptr<Spool> spool);

/// In the order in which they are tried.
[[nodiscard]] const std::vector<Format>& formats();

/// One run from its files.
[[nodiscard]] RunMetrics merge(std::vector<Source> sources);

}  // namespace qualify::evidence
