#include "qualify/composite/composite.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "qualify/certify/composite.hpp"
#include "qualify/ledger/ledger.hpp"

namespace qualify::composite {

namespace {

using standing::Standing;
using standing::Status;

/// What closes each part; a certificate where there is one.
std::vector<certify::PartCitation> citations(const Standing& whole) {
  std::vector<certify::PartCitation> cited;
  for (const standing::Part& part : whole.parts) {
    cited.push_back({part.name, part.gate, part.certificate,
                     part.certificate.empty() ? part.records : std::vector<std::string>()});
  }
  return cited;
}

/// The certificate there is rests on just these records, and stands.
bool says_it_already(const Standing& whole, const standing::Facts& facts,
                     const std::vector<certify::PartCitation>& cited) {
  if (whole.status != Status::pass) return false;
  const auto certificate = facts.certificates.find(whole.certificate);
  if (certificate == facts.certificates.end()) return false;
  std::vector<std::string> now;
  for (const certify::PartCitation& part : cited) {
    if (!part.certificate.empty()) now.push_back(part.certificate);
    now.insert(now.end(), part.decisions.begin(), part.decisions.end());
  }
  return now == certificate->second.rests_on;
}

/// Every bundle that some part speaks of.
std::vector<std::pair<std::string, Digest>> bundles_of(const Standing& whole,
                                                       const standing::Facts& facts,
                                                       const std::vector<Standing>& all) {
  std::vector<std::pair<std::string, Digest>> bundles;
  for (const standing::Part& part : whole.parts) {
    if (const auto found = facts.certificates.find(part.certificate);
        found != facts.certificates.end()) {
      const auto& of = found->second.bundles;
      bundles.insert(bundles.end(), of.begin(), of.end());
    } else if (const Standing* gate = find(all, part.gate); gate != nullptr && gate->bundle) {
      bundles.emplace_back(gate->bundle_name.empty() ? gate->bundle->brief() : gate->bundle_name,
                           *gate->bundle);
    }
  }
  return bundles;
}

}  // namespace

Result<Outcome> judge(run::State& state, const policy::Qualification& qualification,
                      const std::string& name, const ledger::Signer& signer, Time now) {
  const policy::Gate* gate = qualification.gate(name);
  if (gate == nullptr || !policy::is_composite(gate->kind)) {
    return fail(Errc::invalid_input,
                gate == nullptr ? "no gate '" + name + "'"
                                : "gate '" + name + "' is judged by its own runs",
                qualification.file.string());
  }
  Outcome outcome;
  auto done = state.database.transaction([&]() -> Result<void> {
    const auto facts = standing::read_facts(state, qualification);
    if (!facts) return tl::unexpected(facts.error());
    const std::vector<Standing> all = standing::standings(qualification, *facts, now);
    outcome.standing = *find(all, name);
    const Standing& whole = outcome.standing;
    if (!std::all_of(whole.parts.begin(), whole.parts.end(),
                     [](const standing::Part& part) { return part.status == Status::pass; })) {
      return {};
    }
    certify::CompositeResult result{*gate, citations(whole), bundles_of(whole, *facts, all), {}};
    if (says_it_already(whole, *facts, result.parts)) return {};
    result.reasons.push_back("all " + std::to_string(result.parts.size()) + " parts are closed");
    const auto statement = certify::composite_statement(result);
    if (!statement) return tl::unexpected(statement.error());
    // No one bundle: its subjects are those of its parts.
    const auto record =
        ledger::Ledger(state.database)
            .append(signer, ledger::RecordKind::certificate, name, Digest(), now, *statement);
    if (!record) return tl::unexpected(record.error());
    outcome.issued = record->id;
    if (auto log = run::sign_checkpoint(state, now); !log) {
      outcome.log_not_signed = log.error().describe();  // the certificate stands without it
    }
    return {};
  });
  if (!done) return tl::unexpected(done.error());
  if (outcome.issued.empty()) return outcome;
  const auto facts = standing::read_facts(state, qualification);
  if (!facts) return tl::unexpected(facts.error());
  outcome.standing = *find(standing::standings(qualification, *facts, now), name);
  return outcome;
}

}  // namespace qualify::composite
