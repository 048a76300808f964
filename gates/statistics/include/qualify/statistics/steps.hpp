#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "qualify/base/error.hpp"
#include "qualify/statistics/ranks.hpp"
#include "qualify/statistics/series.hpp"

/// From step times to steady windows: what is excluded is decided by the calendar, never by how
/// long a step took. Pure; any thread.
namespace qualify::statistics {

/// The step times of one launch, in the order of the run.
struct StepSeries {
  std::string source;              ///< file or run id, for messages
  std::vector<std::int64_t> step;  ///< iteration numbers; a log interval > 1 gives gaps, all equal
  std::vector<double> seconds;     ///< seconds a step; same length; NaN where nothing was logged
  std::string
      marks;  ///< fingerprint of wall-clock marks; equal and non-empty = one run filed twice
  std::optional<bool> says_deterministic;  ///< what the run itself logged about its mode
  RankTimes ranks;                         ///< of each rank, where the run logged them
  double resolution = 0;  ///< seconds that a time may be off by as it was printed; 0 = it is exact
};

/// A flaw that keeps a pair from being judged. `code` is stable, kebab-case.
struct Fault {
  std::string code;
  std::string message;
  bool operator==(const Fault&) const = default;
};

struct StepRange {
  std::int64_t first = 0;  ///< inclusive
  std::int64_t last = 0;   ///< inclusive
  bool operator==(const StepRange&) const = default;
};

/// Something that happens every `every` steps and disturbs that step and the `after` next ones.
/// every = 0: never.
struct Recurring {
  std::int64_t every = 0;
  std::int64_t after = 1;
  bool operator==(const Recurring&) const = default;
};

/// Which steps are not steady-state training, fixed before the first run. A logged value that
/// covers several steps (log interval > 1) is excluded when it covers an excluded one.
struct ExclusionCalendar {
  std::int64_t init_steps = 1;        ///< from the run's first step: allocation, connections
  std::int64_t first_iterations = 0;  ///< then: compilation, autotuning, graph capture
  std::int64_t warmup_steps = 0;      ///< then: clocks, caches, allocator
  Recurring evaluation;
  Recurring checkpoint;
  std::vector<StepRange> profiler;     ///< profiler runs and their export
  std::vector<std::int64_t> restarts;  ///< first steps after a restart: the three above again
  bool operator==(const ExclusionCalendar&) const = default;
};

enum class Exclusion { init, first_iteration, warmup, evaluation, checkpoint, profiler, restart };
[[nodiscard]] const char* name_of(Exclusion reason);

/// Why `step`, which covers (step - stride, step], is excluded; the first reason of the enum's
/// order. `first_step`: the first step that the run did.
[[nodiscard]] std::optional<Exclusion> excluded_by(const ExclusionCalendar& calendar,
                                                   std::int64_t step, std::int64_t stride,
                                                   std::int64_t first_step);

struct Excluded {
  std::size_t count = 0;
  double seconds = 0;  ///< of the logged values; NaNs add nothing
};

/// The steady steps of one launch.
struct Window {
  std::vector<std::int64_t> step;
  std::vector<double> seconds;
  std::map<Exclusion, Excluded> excluded;
};

/// Both arms of a pair through the same index mask. Faults: "missing-step", "duplicate-step",
/// "unequal-lengths", "bad-time" (NaN, zero, negative), "too-few-steps" (fewer than 20 steady).
struct PairWindows {
  Window a;
  Window b;
  std::int64_t stride = 1;  ///< steps that one logged value covers
  std::vector<Fault> faults;
};
[[nodiscard]] PairWindows steady_windows(const StepSeries& a, const StepSeries& b,
                                         const ExclusionCalendar& calendar);

inline constexpr std::size_t kLeastSteadySteps = 20;

/// What one window says.
struct WindowSummary {
  std::size_t steps = 0;
  double typical = 0;         ///< m: median step, seconds
  double hodges_lehmann = 0;  ///< sensitivity of m
  double mean = 0;
  double stall_burden = 0;         ///< sum (s - 1.5 m)+ / sum s
  double stalls_per_1000 = 0;      ///< steps longer than 1.5 m
  double lag1 = 0;                 ///< autocorrelation at lag 1; 0 for a constant series
  double effective_steps = 0;      ///< effective sample size
  double long_run_variance = 0;    ///< of a step: variance * steps / effective steps, seconds^2
  Transient transient;             ///< MSER-5
  std::optional<MeanShift> shift;  ///< a material shift of the level
  std::vector<Fault> faults;       ///< "no-steady-state", "shift-in-window"
};

/// A window is not steady when MSER-5 discards more than half of it, when its mean shifts, or when
/// it drifts, and the medians of the two parts differ by more than `material` (0.01 = 1% of the
/// typical step): a change that cannot move the verdict is no reason to throw runs away. The
/// evidence must be very strong, BIC difference > 10 (Kass & Raftery 1995) with n replaced by the
/// effective sample size of the residuals, so that autocorrelated noise is not taken for a change.
/// All detectors see values clipped at 3 scaled median absolute deviations.
/// window: at least 20 positive, finite values.
[[nodiscard]] Result<WindowSummary> summarise(const Window& window, double material);

}  // namespace qualify::statistics
