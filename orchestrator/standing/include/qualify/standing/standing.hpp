#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "qualify/certify/records.hpp"
#include "qualify/daemon/arming.hpp"
#include "qualify/ledger/trust.hpp"
#include "qualify/policy/gate.hpp"
#include "qualify/run/progress.hpp"
#include "qualify/run/state.hpp"

/// Where every gate stands: what was judged, whether that still holds, what people decided, and
/// what to do next. The one answer for `status`, `signoff`, composite gates and `explain`.
namespace qualify::standing {

enum class Status {
  open,            ///< nothing that counts yet
  armed,           ///< starts by itself (daemon)
  running,         ///< a job is under way
  pass,            ///< closed: by a certificate, or by a decision on exactly this result
  fail,            ///< judged, and not what the gate asks for
  inconclusive,    ///< judged, and nobody can say
  needs_decision,  ///< the numbers leave it to people
  blocked,         ///< something stands in the way of a start, or a certificate is damaged
  stale,           ///< was judged, under another policy or bundle, too long ago, or is revoked
  waived           ///< need not pass until then
};
[[nodiscard]] const char* name_of(Status status);
/// What a release can be signed off with.
[[nodiscard]] bool is_closed(Status status);

/// A cell or blocker of a composite gate. A composite's certificate cites them in
/// predicate.qualify.parts: [{name, gate, certificate, decisions: [ids]}], the certificate null
/// where decisions close the part; that is what its standing is held against later.
struct Part {
  std::string name;
  std::string gate;
  Status status = Status::open;
  std::string why;
  std::string certificate;                ///< id; empty where there is none
  std::vector<std::string> records = {};  ///< decisions that close it instead
};

struct Standing {
  std::string gate;
  policy::GateKind kind = policy::GateKind::repeatability;
  Status status = Status::open;
  std::vector<std::string> reasons;  ///< most important first, never empty
  std::string next;                  ///< next command; empty = nothing to do
  std::optional<Digest> bundle;      ///< that it speaks of; none for composite gates
  std::string bundle_name;
  Digest policy;                        ///< of the gate as it is declared now
  std::string qualification;            ///< what it rests on: "<gate>-<n>", or empty
  std::string certificate;              ///< id of the certificate that counts, or empty
  std::vector<std::string> records;     ///< ids of decisions and waivers that it rests on
  std::optional<Time> since;            ///< certified, decided, judged or waived
  std::optional<Time> judged;           ///< when its result was reached: what age counts from
  std::optional<Time> until;            ///< when it goes stale by age, or the waiver ends
  std::vector<std::string> supporting;  ///< smaller passes: evidence, never proof
  std::vector<Part> parts;              ///< of a composite gate, in file order
};

/// A certificate as far as others rest on it.
struct Certificate {
  std::string id;
  std::string gate;
  Digest policy;
  Time time;
  std::vector<std::pair<std::string, Digest>> bundles;  ///< subjects: name and manifest
  std::vector<std::string> rests_on;  ///< ids of records: parts, the baseline and its certificate
  std::string verdict;
  std::string fault;  ///< why it does not verify; empty = it does
};
/// `own`: the key that certificates are signed with. Pure.
[[nodiscard]] Certificate read_certificate(const ledger::Record& record,
                                           const ledger::PublicKey& own);

/// What the database says of one gate.
struct GateFacts {
  std::optional<run::QualificationState> finished;  ///< the latest one that was judged
  std::optional<run::QualificationState> later;     ///< begun after that: under way or given up
  std::optional<daemon::Armed> armed;
  std::string certificate;                    ///< id of the gate's newest certificate, or empty
  std::optional<certify::Interval> interval;  ///< of `finished`, where people may decide on it
};

/// What the database says, read once. A value: tests may make one by hand.
struct Facts {
  std::map<std::string, GateFacts> gates;           ///< every gate that the journal knows, or armed
  std::map<std::string, Certificate> certificates;  ///< by id: what the above rests on
  /// Sealed bundles, oldest seal first: which one moved on from which.
  struct Bundle {
    Digest digest;
    std::string name;
    spec::RecipeClass recipe = spec::RecipeClass::debug;
    spec::Topology topology;
  };
  std::vector<Bundle> bundles;
  std::vector<ledger::Record> records;  ///< decisions, waivers, revocations, approvals, sign-offs
  std::optional<ledger::Trust> people;  ///< keys and roles of today's qualification.yaml
  std::string own_key;                  ///< key id of the state
  std::vector<Error> faults;  ///< what could not be read: a bundle, a key; the rest stands
};

/// Errors: busy, io, integrity.
[[nodiscard]] Result<Facts> read_facts(run::State& state,
                                       const policy::Qualification& qualification);

/// Pure. Gates in file order; then, where the journal knows gates that are not declared, those in
/// name order, by the criteria that are on record. A qualification without gates stands for a
/// folder that has no file of them.
[[nodiscard]] std::vector<Standing> standings(const policy::Qualification& qualification,
                                              const Facts& facts, Time now);
/// The one of a gate; null where there is none.
[[nodiscard]] const Standing* find(const std::vector<Standing>& all, const std::string& gate);

/// When a recurrent gate is due next; nothing while an occurrence is under way.
[[nodiscard]] std::optional<Time> next_of(const daemon::Armed& armed);
/// On what an armed gate starts, when, and what it waits for.
[[nodiscard]] std::string describe(const daemon::Armed& armed);

/// A record that counts for nothing any more.
struct Revoked {
  std::string by;  ///< person, or "this state"
  Time time;
  std::string reason;
  std::int64_t index = 0;  ///< position in the log of the revocation with which it was enough
};
/// What is revoked, by id of the record; those revocations only that count: the state's own, and
/// those of enough people with the role `revoke`. `records`: revocations and others, in log order;
/// `people`: null where nobody's keys are known. Pure.
[[nodiscard]] std::map<std::string, Revoked> revoked_records(
    const std::vector<ledger::Record>& records, const std::string& own_key,
    const ledger::Trust* people);

/// A release: what would be signed now, by whom it is, and whether an earlier sign-off still holds.
struct ReleaseStanding {
  enum class Status {
    open,        ///< gates are missing
    ready,       ///< all are closed; signatures are missing
    signed_off,  ///< and nothing that it rests on was taken back; newer results are only told
    stale        ///< signed off once; then revoked, or its gates or their policies are others now
  };
  std::string release;
  Status status = Status::open;
  std::vector<std::string> reasons;
  std::string next;
  certify::ReleaseContent content;     ///< of now; its gates are those that are closed
  bool can_sign = false;               ///< all gates are closed, and there are people who may sign
  std::vector<std::string> people;     ///< who approved exactly this content
  std::vector<std::string> approvals;  ///< their records
  std::uint32_t needed = 0;
  std::string signoff;  ///< id of the newest sign-off, also a stale one
  std::optional<Time> since;
};
[[nodiscard]] const char* name_of(ReleaseStanding::Status status);

/// Pure. In file order. `all`: standings() of the same facts.
[[nodiscard]] std::vector<ReleaseStanding> release_standings(
    const policy::Qualification& qualification, const Facts& facts,
    const std::vector<Standing>& all);

}  // namespace qualify::standing
