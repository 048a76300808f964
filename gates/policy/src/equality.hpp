#pragma once

#include <optional>
#include <string>
#include <vector>

#include "qualify/policy/judge.hpp"

/// What the kinds of gates share that ask for equal runs. All pure.
namespace qualify::policy {

/// What speaks for and against equality so far; doubts and differences in the words of a reason.
struct Findings {
  std::vector<std::string> differences;
  std::vector<std::string> doubts;
  std::vector<std::string> limits;
  std::optional<exactness::Level> level;  ///< lowest of the required metrics that match
};

/// Doubts that one run raises by itself: incomplete, read with faults, a required metric that is
/// missing, short or not finite. Steps first_step..gate.steps must be there.
void weigh_run(const Gate& gate, const RunEvidence& run, std::int64_t first_step,
               Findings& findings);

/// A doubt where two runs are one, filed twice: no two have the same wall-clock times.
void weigh_copies(const RunEvidence& a, const RunEvidence& b, Findings& findings);

/// The names of two runs that are to be compared, and how their environments differ.
[[nodiscard]] PairJudgement pair_of(const RunEvidence& a, const RunEvidence& b);
/// All metrics of two runs that ought to be equal from `first_step` on.
void weigh_values(const Gate& gate, const RunEvidence& a, const RunEvidence& b,
                  std::int64_t first_step, PairJudgement& pair, Findings& findings);
/// Both: runs whose environments differ undeclared are no two runs of one experiment, a doubt.
[[nodiscard]] PairJudgement weigh_pair(const Gate& gate, const RunEvidence& a, const RunEvidence& b,
                                       std::int64_t first_step, Findings& findings);

/// How many nodes two runs have in common, of how many; nothing when either's are not known.
struct CommonNodes {
  std::size_t common = 0;
  std::size_t all = 0;
  [[nodiscard]] bool same() const { return common == all; }
  [[nodiscard]] bool disjoint() const { return common == 0; }
  [[nodiscard]] std::string str() const;  ///< "the same nodes", "2 of 4 nodes in common", …
};
[[nodiscard]] std::optional<CommonNodes> common_nodes(const RunEvidence& a, const RunEvidence& b);

/// Fail on a difference, inconclusive on a doubt, else a pass that says `what`, "… are equal", and
/// in which manner.
[[nodiscard]] Judgement conclude(const std::string& what, Findings findings,
                                 std::vector<PairJudgement> pairs);

/// Runs of one arm that must be equal among themselves, and where the gate asks them to be; all
/// are compared with the first.
[[nodiscard]] std::vector<PairJudgement> weigh_repeats(const Gate& gate,
                                                       const std::vector<RunEvidence>& runs,
                                                       Findings& findings);
/// What the places of such runs take away from a pass, as limits.
void limit_by_places(const std::vector<RunEvidence>& runs, Judgement& judgement);

[[nodiscard]] Judgement judge_repeatability(const Gate& gate, const std::vector<RunEvidence>& runs);
[[nodiscard]] Judgement judge_baseline(const Gate& gate, const std::vector<RunEvidence>& runs,
                                       const RunEvidence* baseline);
[[nodiscard]] Judgement judge_restart(const Gate& gate, const std::vector<RunEvidence>& runs);
[[nodiscard]] Judgement judge_scale(const Gate& gate, const std::vector<RunEvidence>& runs);

}  // namespace qualify::policy
