#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "qualify/base/error.hpp"
#include "qualify/base/json.hpp"

/// What a run left, read without loss: every value keeps the bits it was stored with.
/// Values and functions here are free of shared state: any thread may use them.
namespace qualify::evidence {

/// How much a stored value says about the value the run computed.
enum class Precision {
  float32_bits,  ///< the float32 itself
  float64_bits,  ///< the float64 itself
  integer,       ///< the integer itself
  printed,       ///< decimal text of limited digits; equality proves nothing below them
  sha256,        ///< SHA-256 over all bytes of the value: a tensor, a checkpoint file
  weak_digest,   ///< a digest of part of the bytes, or one whose coverage is not recorded
};
[[nodiscard]] const char* name_of(Precision precision);  ///< "float32-bits", "printed", …

/// One recorded value. `bits` is what equality compares: float32 bits in the low half, float64
/// bits, two's complement integer, or for `printed` the float64 bits of the text's value. For the
/// digests `text` is what equality compares.
struct Scalar {
  std::uint64_t bits = 0;
  Precision precision = Precision::float64_bits;
  int digits = 0;    ///< significant decimal digits, only for printed
  std::string text;  ///< as printed ("1.057432E+01"), or the digest in hex; otherwise empty

  [[nodiscard]] double value() const;  ///< nearest float64, for people and plots
  /// For people: the text, or the shortest decimal that gives the bits back.
  [[nodiscard]] std::string str() const;
  bool operator==(const Scalar&) const = default;
};

/// What a metric measures; time and memory are never part of equality.
enum class MetricKind { numeric, wall_clock, memory };

/// One metric of one run, by iteration (1-based, as the run counted).
struct Series {
  std::string name;  ///< the TensorBoard tag form: "lm loss", "grad-norm", "num-zeros"
  MetricKind kind = MetricKind::numeric;
  std::map<std::int64_t, Scalar> values;
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
/// name to force it. Errors: not_found, io, invalid_input (no known format, empty file),
/// unsupported (another project's schema, by name), usage (no such format).
[[nodiscard]] Result<RunMetrics> read_metrics(const std::filesystem::path& path,
                                              const std::string& format = {});

}  // namespace qualify::evidence
