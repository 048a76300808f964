#include "qualify/run/baselines.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "qualify/run/evidence.hpp"
#include "qualify/store/bundle.hpp"

namespace qualify::run {

namespace {

constexpr const char* kStatementType = "https://in-toto.io/Statement/v1";
constexpr const char* kPredicate = "urn:qualify:predicate:baseline:v1";

Result<Json> signed_predicate(const ledger::Record& record) {
  if (auto whole = ledger::verify_record(record); !whole) return tl::unexpected(whole.error());
  const auto statement = parse_json(record.envelope.payload, "record " + record.id);
  if (!statement) return tl::unexpected(statement.error());
  return statement->at("predicate");
}

Unexpected damaged(const ledger::Record& record, const std::string& what) {
  return fail(Errc::integrity, what,
              std::string(ledger::name_of(record.kind)) + " " + record.id.substr(0, 12));
}

Result<Baseline> read_baseline(const ledger::Record& record) {
  const auto predicate = signed_predicate(record);
  if (!predicate) return tl::unexpected(predicate.error());
  try {
    return Baseline{record.id,
                    predicate->at("name").get<std::string>(),
                    predicate->at("certificate").get<std::string>(),
                    record.gate,
                    record.bundle,
                    predicate->at("run").get<std::string>(),
                    Digest::parse(predicate->at("evidence").get<std::string>()).value(),
                    predicate->at("operator").get<std::string>(),
                    record.time};
  } catch (const std::exception& error) {
    return damaged(record, std::string("is no baseline: ") + error.what());
  }
}

Result<void> check_name(const std::string& name) {
  const bool plain =
      !name.empty() && name.size() <= 100 &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
          std::string::npos;
  if (plain && name.front() != '-') return {};
  return fail(Errc::invalid_input, "not a name for a baseline: '" + name + "'", {},
              "letters, digits, '.', '_' and '-', such as deepseek-v3.2026-11");
}

/// A certificate that was taken back is nothing to compare with.
Result<bool> is_revoked(const ledger::Ledger& ledger, const std::string& id) {
  const auto records = ledger.records(ledger::RecordKind::revocation);
  if (!records) return tl::unexpected(records.error());
  for (const ledger::Record& record : *records) {
    const auto predicate = signed_predicate(record);
    if (!predicate) return tl::unexpected(predicate.error());
    if (predicate->value("revokes", std::string()) == id) return true;
  }
  return false;
}

}  // namespace

Result<certify::Certified> read_certificate(const ledger::Record& certificate) {
  if (certificate.kind != ledger::RecordKind::certificate) {
    return fail(Errc::invalid_input, "record " + certificate.id.substr(0, 12) + " is a " +
                                         ledger::name_of(certificate.kind) + ", no certificate");
  }
  const auto predicate = signed_predicate(certificate);
  if (!predicate) return tl::unexpected(predicate.error());
  auto says = certify::read_certified(*predicate);
  if (!says) return damaged(certificate, says.error().message);
  return says;
}

Result<Baseline> set_baseline(State& state, const std::string& name, const std::string& certificate,
                              const std::string& user, Time now) {
  if (auto good = check_name(name); !good) return tl::unexpected(good.error());
  ledger::Ledger ledger(state.database);
  const auto record = ledger.find(certificate);
  if (!record) return tl::unexpected(record.error());
  const auto says = read_certificate(*record);
  if (!says) return tl::unexpected(says.error());
  const std::string where = "certificate " + record->id.substr(0, 12);
  if (!says->level) {
    return fail(Errc::refused, "it proves no equality of runs: gate " + record->gate, where,
                "take a certificate of a repeatability gate: qualify cert list");
  }
  const auto revoked = is_revoked(ledger, record->id);
  if (!revoked) return tl::unexpected(revoked.error());
  if (*revoked) return fail(Errc::refused, "it was revoked", where);
  const certify::Certified::Run& first = says->runs.front();
  if (auto whole = verify_evidence(state.evidence, first.evidence); !whole) {
    return tl::unexpected(whole.error());
  }
  const auto current = find_baseline(state, name);
  if (current && current->certificate == record->id) return current;
  if (!current && current.error().code != Errc::not_found) return current;

  const auto signer = ledger::load_key(state.paths.signing_key());
  if (!signer) return tl::unexpected(signer.error());
  const Json statement = {
      {"_type", kStatementType},
      {"subject",
       Json::array({{{"name", "bundle"}, {"digest", {{"sha256", record->bundle.hex()}}}}})},
      {"predicateType", kPredicate},
      {"predicate",
       {{"name", name},
        {"certificate", record->id},
        {"run", first.run},
        {"evidence", first.evidence.str()},
        {"operator", user}}}};
  const auto made = ledger.append(**signer, ledger::RecordKind::baseline, record->gate,
                                  record->bundle, now, statement);
  if (!made) return tl::unexpected(made.error());
  return read_baseline(*made);
}

Result<std::vector<Baseline>> all_baselines(State& state) {
  const ledger::Ledger ledger(state.database);
  const auto records = ledger.records(ledger::RecordKind::baseline);
  if (!records) return tl::unexpected(records.error());
  std::vector<Baseline> all;
  for (const ledger::Record& record : *records) {
    auto baseline = read_baseline(record);
    if (!baseline) return tl::unexpected(baseline.error());
    all.push_back(std::move(*baseline));
  }
  return all;
}

Result<Baseline> find_baseline(State& state, const std::string& name) {
  auto all = all_baselines(state);
  if (!all) return tl::unexpected(all.error());
  const auto found = std::find_if(all->rbegin(), all->rend(),
                                  [&](const Baseline& each) { return each.name == name; });
  if (found != all->rend()) return std::move(*found);
  std::set<std::string> names;
  for (const Baseline& each : *all) names.insert(each.name);
  std::string known;
  for (const std::string& each : names) known += (known.empty() ? "" : ", ") + each;
  return fail(Errc::not_found, "no baseline '" + name + "'", state.paths.folder.string(),
              known.empty() ? "set one with: qualify baseline set " + name + " CERTIFICATE"
                            : "baselines there: " + known);
}

Result<plan::Plan> plan_gate(State& state, const policy::Gate& gate, const store::Bundle& bundle,
                             const scheduler::Grant& grant) {
  if (gate.kind != policy::GateKind::baseline) return plan::expand(gate, bundle, grant);
  const auto found = find_baseline(state, gate.baseline);
  if (!found) return tl::unexpected(found.error());
  const auto revoked = is_revoked(ledger::Ledger(state.database), found->certificate);
  if (!revoked) return tl::unexpected(revoked.error());
  if (*revoked) {
    return fail(Errc::refused,
                "the certificate that baseline '" + found->name + "' rests on was revoked",
                "gate '" + gate.name + "'",
                "set it to another: qualify baseline set " + found->name + " CERTIFICATE");
  }
  const auto theirs = store::load(state.bundles, found->bundle);
  if (!theirs) return tl::unexpected(theirs.error());
  return plan::expand(gate, bundle, grant,
                      plan::Established{{found->name, found->record, found->certificate,
                                         found->bundle, found->run, found->evidence},
                                        theirs->topology,
                                        plan::seed_of(*theirs)});
}

}  // namespace qualify::run
