#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "qualify/base/json.hpp"
#include "qualify/evidence/metrics.hpp"

/// Bit-for-bit comparison of runs. Pure functions, no I/O; any thread may call them.
namespace qualify::exactness {

/// Strength of a match, DESIGN section 7.
enum class Level { e0, e1, e2, e3, e4 };
[[nodiscard]] const char* name_of(Level level);  ///< "E1"
[[nodiscard]] Result<Level> parse_level(const std::string& text);
/// What a match of this strength may be called (DESIGN "Evidence and its strength"): only full
/// bytes are an "exact-value match, for the captured boundaries"; device digests, however many, are
/// a "diagnostic match".
[[nodiscard]] const char* claim_of(Level level);

enum class Outcome { equal, differs, inconclusive };
[[nodiscard]] const char* name_of(Outcome outcome);

/// Where two series first part.
struct FirstDifference {
  std::int64_t iteration = 0;
  evidence::Scalar a;
  evidence::Scalar b;
  std::optional<std::uint64_t> ulps;  ///< distance; absent when types differ or one is NaN
};

/// Distance of two float32 or float64 values in units in the last place, through zero and
/// infinity; the difference of two integers. Null for other types, unlike types and NaN.
[[nodiscard]] std::optional<std::uint64_t> ulps_between(const evidence::Scalar& a,
                                                        const evidence::Scalar& b);

/// What one pair of values shows. `consistent`: nothing speaks against equality, nothing proves it.
enum class Pair { equal, consistent, differs };
[[nodiscard]] Pair compare_scalars(const evidence::Scalar& a, const evidence::Scalar& b);

/// Iterations as ranges, for people and records. Of more than 1,000 ranges the rest is only
/// counted.
class Iterations {
 public:
  void add(std::int64_t iteration);  ///< ascending
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::size_t count() const { return count_; }
  /// First and last of each, both included.
  [[nodiscard]] const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges() const {
    return ranges_;
  }
  [[nodiscard]] std::string str() const;  ///< "1-50, 52"; at most six ranges, then "… (n in all)"
  bool operator==(const Iterations&) const = default;

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;
  std::size_t count_ = 0;
};

struct MetricComparison {
  std::string metric;
  Outcome outcome = Outcome::inconclusive;
  std::string why;            ///< for inconclusive: "printed with 7 digits; float32 needs 9; …"
  std::size_t compared = 0;   ///< iterations present on both sides
  std::size_t differing = 0;  ///< of them
  Iterations only_in_a;
  Iterations only_in_b;
  std::optional<FirstDifference> first;
  std::optional<Level> level;  ///< what an equality of this metric is worth; only when equal
};

struct Options {
  std::optional<std::int64_t> from_iteration;
  std::optional<std::int64_t> to_iteration;
  std::vector<std::string> required_metrics;  ///< missing on either side = inconclusive
};

struct Comparison {
  Outcome outcome = Outcome::inconclusive;
  std::optional<Level> level;        ///< of the match; only when equal
  std::vector<std::string> reasons;  ///< why inconclusive, or what limits the match; for people
  std::vector<MetricComparison> metrics;  ///< by name
  std::vector<std::string> excluded;      ///< wall-clock and memory metrics, not compared
  bool same_run_filed_twice = false;

  /// Earliest iteration over all metrics; ties by metric name. Null unless outcome is differs.
  [[nodiscard]] const MetricComparison* first_divergence() const;
};

/// A difference in any value that both sides hold is definitive. Equality needs exact values of
/// every metric at every iteration on both sides, no fault in what was read, and two runs.
[[nodiscard]] Comparison compare(const evidence::RunMetrics& a, const evidence::RunMetrics& b,
                                 const Options& options = {});

/// The two sides are known to be one run: no equality follows. A difference stays what it is (two
/// ways in which one run was read or recorded disagree).
void mark_one_run(Comparison& comparison);

/// The record for `--json` and certificates; schema in docs/formats/comparison.md.
[[nodiscard]] Json to_json(const Comparison& comparison);

}  // namespace qualify::exactness
