#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "qualify/base/clock.hpp"
#include "qualify/base/json.hpp"
#include "qualify/ledger/ledger.hpp"

/// What people sign, and what rests on that: statements to be appended to the ledger, and read
/// back from it. Pure. Whose word counts is another matter (ledger/trust.hpp). Format:
/// docs/formats/certificate.md.
namespace qualify::certify {

inline constexpr const char* kDecisionPredicate = "urn:qualify:predicate:decision:v1";
inline constexpr const char* kWaiverPredicate = "urn:qualify:predicate:waiver:v1";
inline constexpr const char* kRevocationPredicate = "urn:qualify:predicate:revocation:v1";
inline constexpr const char* kApprovalPredicate = "urn:qualify:predicate:approval:v1";
/// https://slsa.dev/spec/v1.0/verification_summary
inline constexpr const char* kVerificationSummaryPredicate =
    "https://slsa.dev/verification_summary/v1";

/// One-sided bounds of an overhead, as ratios of step times.
struct Interval {
  double lower = 0;
  double upper = 0;
  bool operator==(const Interval&) const = default;
};

/// A person's word on exactly one qualification: what the numbers leave open is decided by people.
struct Decision {
  enum class What {
    accept,      ///< the cost that was measured is accepted
    reject,      ///< it is not
    convergence  ///< another trajectory than the baseline's is accepted: `convergence` shows why
  };
  What what = What::accept;
  std::string gate;
  std::string qualification;  ///< "<gate>-<n>"
  Digest bundle;
  std::string bundle_name;
  Digest policy;
  Digest judgement;                   ///< whole, in the evidence store
  std::optional<Interval> interval;   ///< accept, reject: what was measured
  std::optional<Digest> convergence;  ///< the file that was attached, in the evidence store
  std::string person;                 ///< who says it; the key must be theirs
  std::string reason;
};
[[nodiscard]] const char* name_of(Decision::What what);
[[nodiscard]] Json statement_of(const Decision& decision);
/// Errors: integrity, also when the record is another kind or type of statement.
[[nodiscard]] Result<Decision> read_decision(const ledger::Record& record);

/// A gate need not pass until then, in this version of it.
struct Waiver {
  std::string gate;
  Digest policy;                 ///< of the gate: another version is not waived
  std::optional<Digest> bundle;  ///< only for this one; absent: any
  std::string bundle_name;
  Time until;  ///< exclusive
  std::string person;
  std::string reason;
};
[[nodiscard]] Json statement_of(const Waiver& waiver);
[[nodiscard]] Result<Waiver> read_waiver(const ledger::Record& record);

/// From now on the record counts for nothing, and what rests on it is stale.
struct Revocation {
  std::string revokes;                                        ///< id of the record
  ledger::RecordKind kind = ledger::RecordKind::certificate;  ///< of that record
  std::string by;  ///< the person; of a grant, the user who ran the command
  std::string reason;
};
[[nodiscard]] Json statement_of(const Revocation& revocation);
[[nodiscard]] Result<Revocation> read_revocation(const ledger::Record& record);

/// What a release is, in the moment in which it is signed: equal contents are one and the same, and
/// a signature under one counts for no other.
struct ReleaseContent {
  struct Gate {
    std::string gate;
    Digest policy;
    std::string certificate;             ///< id; empty where people closed the gate
    std::vector<std::string> decisions;  ///< ids, ascending
    std::vector<std::string> waivers;
    std::vector<std::string> rests_on;  ///< ids of further certificates (a composite's parts)
    bool operator==(const Gate&) const = default;
  };
  std::string release;
  std::vector<Gate> gates;                ///< in the release's order
  std::map<std::string, Digest> bundles;  ///< by name; all that its gates speak of
  Digest people;                          ///< people_digest: who could sign, and how many had to
  bool operator==(const ReleaseContent&) const = default;

  [[nodiscard]] Digest digest() const;
  /// Every record that it names, ascending, none twice.
  [[nodiscard]] std::vector<std::string> records() const;
};

/// One person's signature.
struct Approval {
  ReleaseContent content;
  Digest qualification_file;  ///< bytes of qualification.yaml as they were, in the evidence store
  std::string person;
  std::string comment;
};
[[nodiscard]] Json statement_of(const Approval& approval);
[[nodiscard]] Result<Approval> read_approval(const ledger::Record& record);

/// That enough persons approved, in the form of a SLSA verification summary; signed by the state.
struct SignOff {
  ReleaseContent content;
  Digest qualification_file;
  std::map<std::string, Digest> key_files;  ///< of persons, by name in that file
  std::vector<std::string> approvals;       ///< ids, in log order
  std::vector<std::string> people;          ///< who they are
  std::uint32_t needed = 0;
  std::string verifier;  ///< key id of the state
  Time time;
};
[[nodiscard]] Json statement_of(const SignOff& signoff);
[[nodiscard]] Result<SignOff> read_signoff(const ledger::Record& record);

}  // namespace qualify::certify
