#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
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
  std::string format;
  std::string file;       ///< for messages
  std::string order_key;  ///< files of one format are merged in this order: first wall-clock mark
  std::map<std::string, Series> series;
  std::vector<ReadFault> faults;
  std::vector<Artefact> artefacts;
  Sha256 marks;
  std::size_t mark_count = 0;

  Series& series_named(const std::string& name);
  void mark(std::string_view text);
  void fault(std::string code, std::string message, const std::string& place,
             std::string metric = {}, std::optional<std::int64_t> iteration = {});
  /// Records a value. The same step twice is a fault, unless `restarted` says that the run went
  /// back to a checkpoint: then only a different value is one.
  void add(Series& to, std::int64_t iteration, Scalar value, const std::string& place,
           bool restarted = false);
};

/// Text that others wrote as valid UTF-8: bytes that are none, and NUL, become "\\xNN".
[[nodiscard]] std::string readable(std::string_view text);

[[nodiscard]] Scalar of_float32(float value);
[[nodiscard]] Scalar of_float64(double value);
[[nodiscard]] Scalar of_integer(std::int64_t value);

/// A decimal number as text: an integer where it is one, otherwise `printed` with its digits;
/// "nan", "inf", "-inf" in any case. Null when it is not a number to its last character.
[[nodiscard]] std::optional<Scalar> parse_number(std::string_view text);

/// For formats that print float64 as their writer's language does. A series with a value of 16 or
/// more digits was printed to give the bits back (shortest form, never 16 digits by rounding): its
/// values are float64 bits. In any other, values were rounded to as many decimals as the longest
/// has, and lost their trailing zeros: "10.9367" among "10.93429" was 10.93670.
void settle_precision(Source& source);

/// "lm_loss" -> "lm loss", "num_zeros" -> "num-zeros": what tables call Megatron's tags.
[[nodiscard]] std::string tag_of(std::string_view column);

/// Names of the column or key that holds the iteration.
[[nodiscard]] bool names_iteration(std::string_view name);
/// Names of a column or key that holds a time of day.
[[nodiscard]] bool names_time(std::string_view name);

/// The first bytes of a file, enough to tell its format.
inline constexpr std::size_t kHead = 65536;

/// Null: the file is not in this format. A file that is, but is damaged, gives faults.
using Read = Result<std::optional<Source>> (*)(const std::filesystem::path& path,
                                               std::string_view head, bool forced);

struct Format {
  const char* name;
  Read read;
};

Result<std::optional<Source>> read_event_file(const std::filesystem::path& path,
                                              std::string_view head, bool forced);
Result<std::optional<Source>> read_megatron_log(const std::filesystem::path& path,
                                                std::string_view head, bool forced);

Result<std::optional<Source>> read_golden(const std::filesystem::path& path, std::string_view head,
                                          bool forced);
Result<std::optional<Source>> read_json_lines(const std::filesystem::path& path,
                                              std::string_view head, bool forced);
Result<std::optional<Source>> read_pr6610_trace(const std::filesystem::path& path,
                                                std::string_view head, bool forced);
Result<std::optional<Source>> read_fork_trace(const std::filesystem::path& path,
                                              std::string_view head, bool forced);
Result<std::optional<Source>> read_csv(const std::filesystem::path& path, std::string_view head,
                                       bool forced);

/// A folder with latest_checkpointed_iteration.txt, or one called iter_…
[[nodiscard]] bool is_checkpoint(const std::filesystem::path& folder);
Result<Source> read_checkpoint(const std::filesystem::path& folder);

/// In the order in which they are tried.
[[nodiscard]] const std::vector<Format>& formats();

/// One run from its files.
[[nodiscard]] RunMetrics merge(std::vector<Source> sources);

}  // namespace qualify::evidence
