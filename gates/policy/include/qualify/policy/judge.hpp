#pragma once

#include <optional>
#include <string>
#include <vector>

#include "qualify/evidence/metrics.hpp"
#include "qualify/exactness/compare.hpp"
#include "qualify/exactness/environment.hpp"
#include "qualify/policy/gate.hpp"
#include "qualify/policy/gpu_clocks.hpp"
#include "qualify/policy/localization.hpp"
#include "qualify/statistics/overhead.hpp"

namespace qualify::policy {

enum class Verdict { pass, fail, inconclusive, needs_decision, blocked };
[[nodiscard]] const char* name_of(Verdict verdict);
[[nodiscard]] Result<Verdict> parse_verdict(const std::string& text);
[[nodiscard]] Exit exit_for(Verdict verdict);

/// One finished run as the judge sees it. The engine fills it from the evidence store.
struct RunEvidence {
  std::string run;  ///< planned run id
  std::string arm;
  std::uint32_t pair = 0;          ///< performance: the pair it belongs to, from 1
  std::string allocation;          ///< job id that ran it: equal ids = one allocation
  std::vector<std::string> nodes;  ///< where it ran by the scheduler's word, sorted; empty when
                                   ///< not known
  std::vector<std::string> seen_nodes;  ///< by each node's own account, sorted; empty as above
  /// Names of the environment (exactness::Environment) that its arm sets by itself.
  std::vector<std::string> arm_settings;
  std::optional<TraceEvidence> traces;  ///< localization; null: it left none, or nobody asked
  bool complete = false;  ///< scheduler state, sentinel and checksums agree on success
  std::string failure;    ///< when not complete: what happened, "exit code 3", "killed by signal 9"
  std::string failure_class;  ///< "workload", "infrastructure", "disagreement"; empty when complete
  evidence::RunMetrics metrics;
  std::vector<GpuReading> gpus;  ///< before and after the workload; empty where none was told
  /// What the job captured of its surroundings; null when it did not get that far, or when the run
  /// is a plain file.
  std::optional<exactness::Environment> environment;
  Digest bundle;                           ///< that ran; zero when not known
  Digest evidence;                         ///< manifest in the evidence store; zero for plain files
  std::optional<bool> says_deterministic;  ///< what the run itself logged about its mode
};

struct PairJudgement {
  std::string run_a;
  std::string run_b;
  std::optional<exactness::Comparison> comparison;  ///< repeatability
  std::optional<double> step_time_ratio;            ///< performance: det / nondet medians
  /// Repeatability and restart: of two runs of one arm nothing is declared to differ. Null when
  /// either captured none.
  std::optional<exactness::EnvironmentComparison> environment = {};
};

/// Localization: where a run's traces part from the reference's.
struct TraceJudgement {
  std::string run_a;
  std::string run_b;
  traces::Localization found;
};

struct Judgement {
  Verdict verdict = Verdict::inconclusive;
  std::vector<std::string> reasons;       ///< most important first; never empty
  std::optional<exactness::Level> level;  ///< of a repeatability pass
  std::vector<PairJudgement> pairs;
  std::optional<statistics::OverheadAnalysis> overhead;  ///< performance; cost of tracing
  std::vector<TraceJudgement> traces;                    ///< localization
  std::vector<std::string>
      limits;  ///< what the verdict does not say ("same allocation", "E1 only")
};

/// What a performance gate asks of its runs, in the order in which they ran: two runs of one pair
/// number are a pair, the arm that comes first ran first, two of the same arm are a placebo pair.
/// `faults` takes what keeps a run from being used ("incomplete-run", "damaged-metrics",
/// "missing-metric", "missing-run"). Also for plain files: `qualify perf` asks the same.
[[nodiscard]] statistics::OverheadRequest overhead_request(const Gate& gate,
                                                           const std::vector<RunEvidence>& runs,
                                                           std::vector<statistics::Fault>& faults);

/// Analyses a request; `faults` make the judgement inconclusive and are its first reasons.
[[nodiscard]] Judgement judge_overhead(const statistics::OverheadRequest& request,
                                       std::vector<statistics::Fault> faults);

/// Pure: the same evidence and gate give the same judgement on any machine.
/// `baseline`: the established run that a gate of kind baseline was bound to in its plan, called
/// kBaselineRun in the judgement; null for the other kinds.
[[nodiscard]] Judgement judge(const Gate& gate, const std::vector<RunEvidence>& runs,
                              const RunEvidence* baseline = nullptr);

/// How the baseline's run is called among a judgement's runs; no planned run is.
inline constexpr const char* kBaselineRun = "baseline";

/// Failed because the runs, equal among themselves, are not equal to the baseline: what a signed
/// convergence qualification can answer. `reasons`: of the judgement.
[[nodiscard]] bool changes_baseline(const std::vector<std::string>& reasons);

/// True when a further registered look could decide what is open: inconclusive for want of pairs.
/// A fault in the data is not cured by more of them.
[[nodiscard]] bool wants_more(const Judgement& judgement);

[[nodiscard]] Json to_json(const Judgement& judgement);

}  // namespace qualify::policy
