#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "qualify/base/error.hpp"
#include "qualify/base/json.hpp"
#include "qualify/evidence/values.hpp"

/// What a run left, read without loss: every value keeps the bits it was stored with.
/// Values and functions here are free of shared state: any thread may use them.
namespace qualify::evidence {

/// What a metric measures; time and memory are never part of equality.
enum class MetricKind { numeric, wall_clock, memory };

/// One metric of one run, by iteration (1-based, as the run counted).
struct Series {
  std::string name;  ///< the TensorBoard tag form: "lm loss", "grad-norm", "num-zeros"
  MetricKind kind = MetricKind::numeric;
  Values values;
};

/// A flaw in what was read: a cut-off line, a duplicate step, a bad CRC. Never silently dropped.
struct ReadFault {
  std::string
      code;  ///< stable, kebab-case: "truncated", "duplicate-step", "bad-crc", "nan-vanished"
  std::string message;
  std::string where;                      ///< "file:line" or "file, record n"
  std::string metric;                     ///< the metric concerned; empty = all of the file
  std::optional<std::int64_t> iteration;  ///< the only iteration concerned; null = all
};

/// A value that is right and yet not the iteration's own: known behaviour of the writer.
struct Artefact {
  std::string code;  ///< "two-step-average": the second logged line after a start averages two
  std::string metric;
  std::int64_t iteration = 0;
};

/// All metrics that one run left in one or several files.
struct RunMetrics {
  std::map<std::string, Series> series;  ///< by Series::name
  std::vector<ReadFault> faults;
  std::vector<Artefact> artefacts;
  std::vector<std::string> sources;  ///< files read, as given
  std::string format;  ///< "tensorboard", "megatron-log", "json-lines", …; "+"-joined
  /// TensorBoard's file beside a single file that was read, or in a folder beside it: a better
  /// source, which was not asked for. Empty when there is none.
  std::string event_file_beside;
  /// Fingerprint of the run's own wall-clock marks (event times, log times), one word a format:
  /// "tensorboard:<hex> megatron-log:<hex>". Two runs that share a word are one run filed twice.
  std::string wall_clock_marks;
};

/// True when the two share at least one fingerprint of wall-clock marks.
[[nodiscard]] bool shares_marks(const RunMetrics& a, const RunMetrics& b);

/// Wall-clock and memory metrics, told by name ("iteration-time", "mem-…-bytes").
[[nodiscard]] MetricKind kind_of(const std::string& metric);

/// Reads one file or every metric file below a folder, formats told by content; other files in a
/// folder are passed over, damaged metric files are not: they leave a fault. When several sources
/// have one metric, the one with the most precise values is used. iteration-time is in seconds
/// whatever the source. A checkpoint folder is read as such, its files by SHA-256, when it is
/// `path` itself; within a run's folder checkpoints are passed over. `format`: empty, or a format's
/// name to force it. `scratch`: a folder for values beyond the first 16 MiB (an unnamed file that
/// goes with the result), so that a run of any length is read in constant memory; empty: all are
/// kept in memory. Errors: not_found, io, invalid_input (no known format, empty file), no_space,
/// unsupported (another project's schema, by name), usage (no such format).
[[nodiscard]] Result<RunMetrics> read_metrics(const std::filesystem::path& path,
                                              const std::string& format = {},
                                              const std::filesystem::path& scratch = {});

/// The same, where a bundle declares its outputs' formats: `format_of` says each file's, empty =
/// told by content.
[[nodiscard]] Result<RunMetrics> read_metrics_as(
    const std::filesystem::path& path,
    const std::function<std::string(const std::filesystem::path& file)>& format_of,
    const std::filesystem::path& scratch = {});

/// What `format` may be.
[[nodiscard]] std::vector<std::string> format_names();

}  // namespace qualify::evidence
