#include <nlohmann/json.hpp>

#include "qualify/standing/people.hpp"
#include "qualify/standing/standing.hpp"
#include "qualify/store/bundle.hpp"

namespace qualify::standing {

namespace {

using ledger::RecordKind;

/// What a certificate's own words are, as far as others rest on them. Throws on what no engine
/// writes.
void read_statement(const Json& statement, Certificate& to) {
  for (const Json& subject : statement.at("subject")) {
    to.bundles.emplace_back(
        subject.at("name").get<std::string>(),
        Digest::parse(subject.at("digest").at("sha256").get<std::string>()).value());
  }
  const Json& own = statement.at("predicate").at("qualify");
  to.verdict = own.at("verdict").get<std::string>();
  to.policy = Digest::parse(own.at("policy").at("digest").get<std::string>()).value();
  const auto rests_on = [&](const Json& where, const char* key) {
    if (const auto id = where.find(key); id != where.end() && id->is_string()) {
      if (const auto text = id->get<std::string>(); !text.empty()) to.rests_on.push_back(text);
    }
  };
  if (const auto baseline = own.find("baseline"); baseline != own.end() && baseline->is_object()) {
    rests_on(*baseline, "record");
    rests_on(*baseline, "certificate");
  }
  if (const auto parts = own.find("parts"); parts != own.end() && parts->is_array()) {
    for (const Json& part : *parts) {
      rests_on(part, "certificate");
      if (const auto decisions = part.find("decisions"); decisions != part.end()) {
        for (const Json& id : *decisions) to.rests_on.push_back(id.get<std::string>());
      }
    }
  }
}

/// The certificates that some gate rests on, and those that these rest on in turn.
Result<void> read_certificates(const ledger::Ledger& ledger, const ledger::PublicKey& own,
                               std::vector<std::string> wanted, Facts& facts) {
  while (!wanted.empty()) {
    const std::string id = std::move(wanted.back());
    wanted.pop_back();
    if (id.empty() || facts.certificates.contains(id)) continue;
    const auto record = ledger.find(id);
    if (!record) {
      if (record.error().code != Errc::not_found) return tl::unexpected(record.error());
      continue;  // whoever rests on it says so
    }
    if (record->kind != RecordKind::certificate) continue;  // a baseline, a decision
    auto certificate = read_certificate(*record, own);
    wanted.insert(wanted.end(), certificate.rests_on.begin(), certificate.rests_on.end());
    facts.certificates.emplace(id, std::move(certificate));
  }
  return {};
}

/// Bounds of the overhead, as the judgement has them.
Result<certify::Interval> read_interval(const run::State& state, const Digest& judgement) {
  const auto bytes = state.evidence.read(judgement);
  if (!bytes) return tl::unexpected(bytes.error());
  const auto json = parse_json(*bytes, "judgement " + judgement.brief());
  if (!json) return tl::unexpected(json.error());
  try {
    const Json& bounds = json->at("overhead").at("one_sided_bounds");
    return certify::Interval{bounds.at("low").get<double>(), bounds.at("high").get<double>()};
  } catch (const std::exception& error) {
    return fail(Errc::integrity, std::string("a judgement without bounds: ") + error.what(),
                "judgement " + judgement.brief());
  }
}

Result<void> read_gates(run::State& state, Facts& facts) {
  const journal::Journal journal(state.database);
  const auto names = journal.latest_qualifications();
  if (!names) return tl::unexpected(names.error());
  for (const std::string& name : *names) {
    auto latest = run::state_of(journal, name);
    if (!latest) return tl::unexpected(latest.error());
    const std::string gate = latest->plan.gate;
    GateFacts& of = facts.gates[gate];
    if (latest->finished()) {
      of.finished = std::move(*latest);
    } else {
      of.later = std::move(*latest);
      const auto finished = journal.latest_with(gate, run::event::kVerdict);
      if (!finished) return tl::unexpected(finished.error());
      if (!finished->empty()) {
        auto before = run::state_of(journal, *finished);
        if (!before) return tl::unexpected(before.error());
        of.finished = std::move(*before);
      }
    }
    if (of.finished && of.finished->verdict == policy::Verdict::needs_decision) {
      auto interval = read_interval(state, *of.finished->judgement);
      if (interval) {
        of.interval = *interval;
      } else {
        facts.faults.push_back(interval.error());
      }
    }
  }
  auto armed = daemon::armed_gates(state.database);
  if (!armed) return tl::unexpected(armed.error());
  for (daemon::Armed& one : *armed) {
    const std::string gate = one.gate.name;
    facts.gates[gate].armed = std::move(one);
  }
  return {};
}

}  // namespace

Certificate read_certificate(const ledger::Record& record, const ledger::PublicKey& own) {
  Certificate certificate{record.id, record.gate, {}, record.time, {}, {}, {}, {}};
  const auto statement = ledger::statement_of(record);
  if (record.public_key_pem != own.pem()) {
    certificate.fault = "signed by a key that is not this state's";
  } else if (const auto whole = ledger::verify_record(record, own, statement); !whole) {
    certificate.fault = whole.error().message;
  }
  try {
    read_statement(statement.value(), certificate);
  } catch (const std::exception& error) {
    if (certificate.fault.empty()) {
      certificate.fault = std::string("not a certificate of a gate: ") + error.what();
    }
  }
  return certificate;
}

Result<Facts> read_facts(run::State& state, const policy::Qualification& qualification) {
  Facts facts;
  const auto own = ledger::load_public_key(state.paths.signing_key().string() + ".pub");
  if (!own) return tl::unexpected(own.error());
  facts.own_key = own->key_id();
  if (auto people = load_people(qualification, keys_beside(qualification.file))) {
    facts.people = std::move(*people);
  } else {
    facts.faults.push_back(people.error());
  }
  if (auto read = read_gates(state, facts); !read) return tl::unexpected(read.error());

  const ledger::Ledger ledger(state.database);
  std::vector<std::string> wanted;
  for (const policy::Gate& gate : qualification.gates) {
    if (!policy::is_composite(gate.kind)) continue;
    const auto newest = ledger.newest(RecordKind::certificate, gate.name);
    if (!newest) return tl::unexpected(newest.error());
    if (*newest) wanted.push_back(facts.gates[gate.name].certificate = (*newest)->id);
  }
  for (auto& [name, gate] : facts.gates) {
    if (!gate.finished || gate.finished->certificate.empty()) continue;
    gate.certificate = gate.finished->certificate;
    wanted.push_back(gate.certificate);
  }
  for (const RecordKind kind : {RecordKind::decision, RecordKind::waiver, RecordKind::revocation,
                                RecordKind::approval, RecordKind::signoff}) {
    auto records = ledger.records(kind);
    if (!records) return tl::unexpected(records.error());
    for (ledger::Record& record : *records) facts.records.push_back(std::move(record));
  }
  if (auto read = read_certificates(ledger, *own, std::move(wanted), facts); !read) {
    return tl::unexpected(read.error());
  }

  const auto bundles = store::list(state.bundles);
  if (!bundles) {
    facts.faults.push_back(bundles.error());
    return facts;
  }
  for (const store::Bundle& bundle : *bundles) {
    facts.bundles.push_back({bundle.digest, bundle.name, bundle.recipe, bundle.topology});
  }
  return facts;
}

}  // namespace qualify::standing
