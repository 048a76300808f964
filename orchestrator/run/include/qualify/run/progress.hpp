#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qualify/journal/journal.hpp"
#include "qualify/plan/plan.hpp"
#include "qualify/policy/judge.hpp"

/// State of a qualification, derived from its journal events and from nothing else.
namespace qualify::run {

/// The kinds of journal events that the engine writes; payloads in docs/formats/journal.md.
namespace event {
inline constexpr const char* kPlanCreated = "plan.created";
inline constexpr const char* kPreflight = "preflight";
inline constexpr const char* kIntent = "attempt.intent";
inline constexpr const char* kSubmitted = "attempt.submitted";
inline constexpr const char* kUnanswered = "attempt.unanswered";
inline constexpr const char* kRunning = "attempt.running";
inline constexpr const char* kBreach = "attempt.breach";
inline constexpr const char* kEnded = "attempt.ended";
inline constexpr const char* kEvidence = "evidence.collected";
inline constexpr const char* kWindowClosed = "window.closed";  ///< no room for a further stage
inline constexpr const char* kCancelled = "qualification.cancelled";
inline constexpr const char* kVerdict = "verdict.reached";
inline constexpr const char* kCertificate = "certificate.issued";
}  // namespace event

/// How an attempt ended, in the words that retry rules and judgements use.
enum class FailureClass { none, workload, infrastructure, disagreement, cancelled };
[[nodiscard]] const char* name_of(FailureClass failure);

struct Attempt {
  int number = 0;
  std::string nonce;
  std::string job_id;         ///< empty until submitted
  bool running_seen = false;  ///< attempt.running was recorded
  bool ended = false;
  bool complete = false;  ///< ended, and scheduler and sentinel agree on success
  std::string failure;    ///< when ended and not complete
  FailureClass failure_class = FailureClass::none;
  std::optional<Time> submitted_at;
  std::optional<Time> ended_at;
  std::vector<std::string> nodes;  ///< where it ran, by the scheduler's word; empty = not known
  std::string breach;              ///< why it is being, or was, cancelled; empty = it was not
  FailureClass breach_class = FailureClass::none;
  double node_seconds = 0;  ///< what it cost, by the scheduler's times; of a shared job its share
  double gpu_seconds = 0;
  std::string job;  ///< the scheduler's last word, canonical JSON; empty = none
};

struct RunState {
  plan::Run run;
  std::vector<Attempt> attempts;
  std::optional<Digest> evidence;  ///< manifest in the evidence store
};

struct QualificationState {
  std::string name;
  Time started;
  policy::Gate gate;  ///< the criteria as they were recorded before the first run
  plan::Plan plan;
  Digest plan_digest;
  std::vector<RunState> runs;  ///< in plan order
  std::vector<std::string>
      preflight_faults;       ///< of the latest preflight; empty = passed or none yet
  std::string window_closed;  ///< why a further stage was not run; empty otherwise
  std::optional<policy::Verdict> verdict;
  std::vector<std::string> reasons;
  std::optional<std::string> level;
  std::optional<Digest> judgement;  ///< whole, in the evidence store
  std::optional<Time> judged_at;
  std::string certificate;  ///< ledger id, or empty
  std::string summary;      ///< one line for tables: "first differs at …", "ratio 1.042"

  std::string cancelled;  ///< by whom and why a person gave it up; empty = nobody did

  [[nodiscard]] bool finished() const { return verdict.has_value(); }
  /// Neither judged nor given up: `run` and `resume` go on with it.
  [[nodiscard]] bool open() const { return !finished() && cancelled.empty(); }
};

/// Attempts at one run before infrastructure failures end it.
inline constexpr int kMaxAttempts = 3;

/// Whether runs that share one job need a (further) attempt. `runs`: not empty; none of their
/// attempts is live.
[[nodiscard]] bool wants_attempt(std::span<const RunState> runs);
/// A run that starts from what another left cannot be, where that one came to nothing.
[[nodiscard]] bool can_begin(const QualificationState& state, const RunState& run);
/// An attempt has not ended, as far as the journal knows: its job may be live.
[[nodiscard]] bool is_live(const QualificationState& state);
/// Whether anything has to be submitted before the first `runs` of the plan can be judged.
[[nodiscard]] bool wants_submission(const QualificationState& state, std::size_t runs);

/// What was spent, failed attempts too.
struct Cost {
  std::string arm;
  int attempts = 0;
  double node_seconds = 0;
  double gpu_seconds = 0;
};
/// Over some qualifications, by arm, in the order in which their plans first name them.
[[nodiscard]] std::vector<Cost> cost_by_arm(std::span<const QualificationState> states);

/// Takes one further event into the state. Errors: integrity (no engine writes it in this place).
[[nodiscard]] Result<void> apply(QualificationState& state, const journal::Event& entry);
/// Criteria that were read before, by what is on record: most qualifications of a gate have the
/// same. For whoever derives thousands. Thread-safe.
class KnownCriteria {
 public:
  /// Errors: integrity.
  [[nodiscard]] Result<policy::Gate> read(const Json& criteria);

 private:
  std::mutex mutex_;
  std::map<std::string, policy::Gate> known_;
};
/// All events of a qualification, from its first on. `known`: null for none. Errors: as apply.
[[nodiscard]] Result<QualificationState> derive(const std::vector<journal::Event>& events,
                                                KnownCriteria* known = nullptr);

/// The same from the journal. Errors: as derive; busy, io.
[[nodiscard]] Result<QualificationState> state_of(const journal::Journal& journal,
                                                  const std::string& name);

/// How long all runs of a plan will take, by the mean of whole earlier runs of the same gate,
/// bundle and arms, from submission to end. Nothing where some arm was never run to its end.
/// Errors: busy, io, integrity.
[[nodiscard]] Result<std::optional<Duration>> expected_duration(journal::Database& database,
                                                                const plan::Plan& plan);

/// The latest qualification of every gate, or of one, where it is open(). Oldest first.
/// Errors: busy, io, integrity.
[[nodiscard]] Result<std::vector<QualificationState>> open_qualifications(
    journal::Database& database, const std::string& gate = {});

}  // namespace qualify::run
