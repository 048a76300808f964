#include "granting.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "qualify/certify/records.hpp"

namespace qualify::cli {

namespace {

constexpr const char* kStatementType = "https://in-toto.io/Statement/v1";
constexpr const char* kGrantPredicate = "urn:qualify:predicate:grant:v1";

Json grant_statement(const scheduler::Grant& grant) {
  return {
      {"_type", kStatementType},
      {"subject", Json::array({{{"name", "reservation/" + grant.reservation.name},
                                {"digest", {{"sha256", fingerprint(grant.reservation).hex()}}}}})},
      {"predicateType", kGrantPredicate},
      {"predicate", to_json(grant)}};
}

Result<scheduler::Grant> read_grant(const ledger::Record& record) {
  if (auto whole = ledger::verify_record(record); !whole) return tl::unexpected(whole.error());
  const auto statement = parse_json(record.envelope.payload, "grant " + record.id);
  if (!statement) return tl::unexpected(statement.error());
  const auto predicate = statement->find("predicate");
  if (predicate == statement->end()) {
    return fail(Errc::integrity, "a grant without predicate", "grant " + record.id);
  }
  return scheduler::grant_from_json(*predicate);
}

/// Ids of records that were revoked.
Result<std::vector<std::string>> revoked(const ledger::Ledger& ledger) {
  const auto records = ledger.records(ledger::RecordKind::revocation);
  if (!records) return tl::unexpected(records.error());
  std::vector<std::string> ids;
  for (const ledger::Record& record : *records) {
    const auto revocation = certify::read_revocation(record);
    if (!revocation) return tl::unexpected(revocation.error());
    ids.push_back(revocation->revokes);
  }
  return ids;
}

}  // namespace

Result<scheduler::Reservation> find_reservation(scheduler::Scheduler& scheduler,
                                                const std::string& name) {
  auto reservations = scheduler.reservations();
  if (!reservations) return tl::unexpected(reservations.error());
  std::string known;
  for (scheduler::Reservation& reservation : *reservations) {
    if (reservation.name == name) return std::move(reservation);
    known += (known.empty() ? "" : ", ") + reservation.name;
  }
  return fail(Errc::not_found, "no reservation '" + name + "' is visible to you", {},
              known.empty() ? "no reservation is visible at all" : "visible: " + known);
}

Result<ledger::Record> record_grant(Session& session, run::State& state, const std::string& gate,
                                    scheduler::Scheduler& scheduler,
                                    const scheduler::Reservation& reservation) {
  const auto nodes = scheduler.nodes();
  if (!nodes) return tl::unexpected(nodes.error());
  if (const auto faults = scheduler::unfit_for_grant(reservation, *nodes); !faults.empty()) {
    Error error{Errc::refused,
                faults.front().message,
                "reservation '" + reservation.name + "'",
                "such a reservation cannot keep the promise; ask for one without it",
                {}};
    for (std::size_t i = 1; i < faults.size(); ++i) {
      error.others.push_back({Errc::refused, faults[i].message, error.context, {}, {}});
    }
    return Unexpected(std::move(error));
  }
  const auto signer = ledger::load_key(state.paths.signing_key());
  if (!signer) return tl::unexpected(signer.error());
  const scheduler::Grant grant{gate, scheduler.kind(), reservation, session.user,
                               session.clock.now()};
  ledger::Ledger ledger(state.database);
  return ledger.append(**signer, ledger::RecordKind::grant, gate, Digest(), grant.granted_at,
                       grant_statement(grant));
}

namespace {

struct Standing {
  std::string id;
  scheduler::Grant grant;
};

/// Grants of this reservation to this gate that are not revoked, oldest first.
Result<std::vector<Standing>> standing_grants(run::State& state, const std::string& gate,
                                              const std::string& reservation) {
  const ledger::Ledger ledger(state.database);
  const auto records = ledger.records(ledger::RecordKind::grant, gate);
  if (!records) return tl::unexpected(records.error());
  const auto withdrawn = revoked(ledger);
  if (!withdrawn) return tl::unexpected(withdrawn.error());
  std::vector<Standing> standing;
  for (const ledger::Record& record : *records) {
    auto grant = read_grant(record);
    if (!grant) return tl::unexpected(grant.error());
    if (grant->reservation.name != reservation) continue;
    if (std::find(withdrawn->begin(), withdrawn->end(), record.id) != withdrawn->end()) continue;
    standing.push_back({record.id, std::move(*grant)});
  }
  return standing;
}

}  // namespace

Result<std::optional<scheduler::Grant>> current_grant(run::State& state, const std::string& gate,
                                                      const std::string& reservation) {
  auto standing = standing_grants(state, gate, reservation);
  if (!standing) return tl::unexpected(standing.error());
  if (standing->empty()) return std::optional<scheduler::Grant>();
  return std::optional<scheduler::Grant>(std::move(standing->back().grant));
}

Result<std::optional<scheduler::Grant>> grant_behind(run::State& state,
                                                     const run::QualificationState& one) {
  const auto records =
      ledger::Ledger(state.database).records(ledger::RecordKind::grant, one.plan.gate);
  if (!records) return tl::unexpected(records.error());
  for (auto record = records->rbegin(); record != records->rend(); ++record) {
    auto grant = read_grant(*record);
    if (!grant) return tl::unexpected(grant.error());
    if (fingerprint(grant->reservation) == one.plan.reservation_fingerprint) {
      return std::optional<scheduler::Grant>(std::move(*grant));
    }
  }
  return std::optional<scheduler::Grant>();
}

Result<std::size_t> revoke_grants(Session& session, run::State& state, const std::string& gate,
                                  const std::string& reservation) {
  const auto standing = standing_grants(state, gate, reservation);
  if (!standing) return tl::unexpected(standing.error());
  if (standing->empty()) return 0;
  const auto signer = ledger::load_key(state.paths.signing_key());
  if (!signer) return tl::unexpected(signer.error());
  ledger::Ledger ledger(state.database);
  for (const Standing& grant : *standing) {
    const auto record = ledger.append(
        **signer, ledger::RecordKind::revocation, gate, Digest(), session.clock.now(),
        statement_of(certify::Revocation{grant.id, ledger::RecordKind::grant, session.user, {}}));
    if (!record) return tl::unexpected(record.error());
  }
  return standing->size();
}

Result<scheduler::Grant> grant_for_run(Session& session, run::State& state,
                                       scheduler::Scheduler& scheduler, const std::string& gate,
                                       const std::string& reservation) {
  const bool local = scheduler.kind() == "local";
  const std::string name = local ? "local" : reservation;
  auto grant = current_grant(state, gate, name);
  if (!grant) return tl::unexpected(grant.error());
  if (local) {
    auto machine = find_reservation(scheduler, name);
    if (!machine) return tl::unexpected(machine.error());
    const bool current =
        *grant && fingerprint((*grant)->reservation) == scheduler::fingerprint(*machine);
    if (!current) {
      const auto record = record_grant(session, state, gate, scheduler, *machine);
      if (!record) return tl::unexpected(record.error());
      grant = current_grant(state, gate, name);
      if (!grant) return tl::unexpected(grant.error());
    }
  }
  if (*grant) return std::move(**grant);
  return fail(Errc::refused,
              "reservation '" + reservation + "' is not granted to gate '" + gate +
                  "'; nothing was submitted",
              {}, "qualify reservation grant " + reservation + " --gate " + gate);
}

}  // namespace qualify::cli
