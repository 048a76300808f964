#include "qualify/certify/records.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

namespace qualify::certify {

namespace {

constexpr const char* kStatementType = "https://in-toto.io/Statement/v1";
constexpr int kSchemaVersion = 1;
constexpr std::array kDecisions = {"accept", "reject", "convergence"};

Json subject(const std::string& name, const Digest& digest) {
  return {{"name", name}, {"digest", {{"sha256", digest.hex()}}}};
}

Json statement(Json subjects, const char* type, Json predicate) {
  return {{"_type", kStatementType},
          {"subject", std::move(subjects)},
          {"predicateType", type},
          {"predicate", std::move(predicate)}};
}

Json or_null(const std::optional<Digest>& digest) {
  return digest ? Json(digest->str()) : Json(nullptr);
}

std::string text(const Json& json, const char* key) {
  return json.at(key).get<std::string>();
}

Digest digest(const Json& json, const char* key) {
  return Digest::parse(text(json, key)).value();
}

std::optional<Digest> maybe_digest(const Json& json, const char* key) {
  return json.at(key).is_null() ? std::nullopt : std::optional(digest(json, key));
}

Time time(const Json& json, const char* key) {
  return parse_time(text(json, key)).value();
}

/// Reads a record's predicate with `read`, and asks that the value, written again, is what was
/// signed: nothing in it is looked over, and no statement is taken for another.
template <class Value, class Read>
Result<Value> read_back(const ledger::Record& record, ledger::RecordKind kind, Read&& read) {
  const auto wrong = [&](const std::string& what) {
    return fail(
        Errc::integrity,
        std::string("not a ") + ledger::name_of(kind) + " as this program writes it: " + what,
        "record " + record.id.substr(0, 12));
  };
  if (record.kind != kind) return wrong(std::string("it is a ") + ledger::name_of(record.kind));
  auto whole = parse_json(record.envelope.payload, "record");
  if (!whole) return wrong(whole.error().message);
  try {
    Value value = read(*whole);
    whole->at("predicate").erase("record");
    if (statement_of(value) != *whole) return wrong("it does not come back as it was signed");
    return value;
  } catch (const std::exception& error) {
    return wrong(error.what());
  }
}

Json gate_json(const ReleaseContent::Gate& gate) {
  return {{"gate", gate.gate},
          {"policy", gate.policy.str()},
          {"certificate", gate.certificate.empty() ? Json(nullptr) : Json(gate.certificate)},
          {"decisions", gate.decisions},
          {"waivers", gate.waivers},
          {"rests_on", gate.rests_on}};
}

Json content_json(const ReleaseContent& content) {
  Json gates = Json::array();
  for (const auto& gate : content.gates) gates.push_back(gate_json(gate));
  Json bundles = Json::object();
  for (const auto& [name, bundle] : content.bundles) bundles[name] = bundle.str();
  return {{"schema_version", kSchemaVersion},
          {"release", content.release},
          {"gates", std::move(gates)},
          {"bundles", std::move(bundles)},
          {"people", content.people.str()}};
}

ReleaseContent read_content(const Json& json) {
  ReleaseContent content;
  content.release = text(json, "release");
  for (const Json& each : json.at("gates")) {
    ReleaseContent::Gate gate;
    gate.gate = text(each, "gate");
    gate.policy = digest(each, "policy");
    if (!each.at("certificate").is_null()) gate.certificate = text(each, "certificate");
    gate.decisions = each.at("decisions").get<std::vector<std::string>>();
    gate.waivers = each.at("waivers").get<std::vector<std::string>>();
    gate.rests_on = each.at("rests_on").get<std::vector<std::string>>();
    content.gates.push_back(std::move(gate));
  }
  for (const auto& [name, bundle] : json.at("bundles").items()) {
    content.bundles[name] = Digest::parse(bundle.get<std::string>()).value();
  }
  content.people = digest(json, "people");
  return content;
}

/// The release first: it has a digest even where all of its gates are waived.
Json subjects_of(const ReleaseContent& content) {
  Json subjects = Json::array({subject("release/" + content.release, content.digest())});
  for (const auto& [name, bundle] : content.bundles) subjects.push_back(subject(name, bundle));
  return subjects;
}

}  // namespace

const char* name_of(Decision::What what) {
  return kDecisions[static_cast<std::size_t>(what)];
}

Json statement_of(const Decision& decision) {
  Json interval = nullptr;
  if (decision.interval) interval = {decision.interval->lower, decision.interval->upper};
  return statement(Json::array({subject(decision.bundle_name, decision.bundle)}),
                   kDecisionPredicate,
                   {{"schema_version", kSchemaVersion},
                    {"decision", name_of(decision.what)},
                    {"gate", decision.gate},
                    {"qualification", decision.qualification},
                    {"policy", decision.policy.str()},
                    {"judgement", decision.judgement.str()},
                    {"interval", std::move(interval)},
                    {"convergence", or_null(decision.convergence)},
                    {"person", decision.person},
                    {"reason", decision.reason}});
}

Result<Decision> read_decision(const ledger::Record& record) {
  return read_back<Decision>(record, ledger::RecordKind::decision, [&](const Json& whole) {
    const Json& predicate = whole.at("predicate");
    Decision decision;
    const auto what = std::find(kDecisions.begin(), kDecisions.end(), text(predicate, "decision"));
    if (what == kDecisions.end()) throw std::invalid_argument("decision");
    decision.what = static_cast<Decision::What>(what - kDecisions.begin());
    decision.gate = text(predicate, "gate");
    decision.qualification = text(predicate, "qualification");
    decision.bundle = record.bundle;
    decision.bundle_name = text(whole.at("subject").at(0), "name");
    decision.policy = digest(predicate, "policy");
    decision.judgement = digest(predicate, "judgement");
    if (const Json& interval = predicate.at("interval"); !interval.is_null()) {
      decision.interval = Interval{interval.at(0).get<double>(), interval.at(1).get<double>()};
    }
    decision.convergence = maybe_digest(predicate, "convergence");
    decision.person = text(predicate, "person");
    decision.reason = text(predicate, "reason");
    if (decision.gate != record.gate) throw std::invalid_argument("of another gate");
    return decision;
  });
}

Json statement_of(const Waiver& waiver) {
  // Without a bundle it is about the gate in this version alone.
  const Json about = waiver.bundle ? subject(waiver.bundle_name, *waiver.bundle)
                                   : subject("policy/" + waiver.gate, waiver.policy);
  return statement(Json::array({about}), kWaiverPredicate,
                   {{"schema_version", kSchemaVersion},
                    {"gate", waiver.gate},
                    {"policy", waiver.policy.str()},
                    {"bundle", or_null(waiver.bundle)},
                    {"until", format_time(waiver.until)},
                    {"person", waiver.person},
                    {"reason", waiver.reason}});
}

Result<Waiver> read_waiver(const ledger::Record& record) {
  return read_back<Waiver>(record, ledger::RecordKind::waiver, [&](const Json& whole) {
    const Json& predicate = whole.at("predicate");
    Waiver waiver;
    waiver.gate = text(predicate, "gate");
    waiver.policy = digest(predicate, "policy");
    waiver.bundle = maybe_digest(predicate, "bundle");
    if (waiver.bundle) waiver.bundle_name = text(whole.at("subject").at(0), "name");
    waiver.until = time(predicate, "until");
    waiver.person = text(predicate, "person");
    waiver.reason = text(predicate, "reason");
    if (waiver.gate != record.gate) throw std::invalid_argument("of another gate");
    if (waiver.bundle.value_or(Digest()) != record.bundle) {
      throw std::invalid_argument("of another bundle");
    }
    return waiver;
  });
}

Json statement_of(const Revocation& revocation) {
  return statement(
      Json::array({{{"name", ledger::name_of(revocation.kind) + ("/" + revocation.revokes)},
                    {"digest", {{"sha256", revocation.revokes}}}}}),
      kRevocationPredicate,
      {{"revokes", revocation.revokes},
       {"operator", revocation.by},
       {"reason", revocation.reason}});
}

Result<Revocation> read_revocation(const ledger::Record& record) {
  return read_back<Revocation>(record, ledger::RecordKind::revocation, [&](Json& whole) {
    Json& predicate = whole.at("predicate");
    Revocation revocation;
    revocation.revokes = text(predicate, "revokes");
    revocation.by = text(predicate, "operator");
    // Revocations of grants had none at first.
    if (!predicate.contains("reason")) predicate["reason"] = "";
    revocation.reason = text(predicate, "reason");
    const std::string name = text(whole.at("subject").at(0), "name");
    revocation.kind = ledger::parse_record_kind(name.substr(0, name.find('/'))).value();
    return revocation;
  });
}

Digest ReleaseContent::digest() const {
  return digest_of(content_json(*this));
}

std::vector<std::string> ReleaseContent::records() const {
  std::set<std::string> all;
  for (const Gate& gate : gates) {
    if (!gate.certificate.empty()) all.insert(gate.certificate);
    for (const auto* list : {&gate.decisions, &gate.waivers, &gate.rests_on}) {
      all.insert(list->begin(), list->end());
    }
  }
  return {all.begin(), all.end()};
}

Json statement_of(const Approval& approval) {
  return statement(subjects_of(approval.content), kApprovalPredicate,
                   {{"schema_version", kSchemaVersion},
                    {"content", content_json(approval.content)},
                    {"digest", approval.content.digest().str()},
                    {"qualification_file", approval.qualification_file.str()},
                    {"person", approval.person},
                    {"comment", approval.comment}});
}

Result<Approval> read_approval(const ledger::Record& record) {
  return read_back<Approval>(record, ledger::RecordKind::approval, [&](const Json& whole) {
    const Json& predicate = whole.at("predicate");
    Approval approval;
    approval.content = read_content(predicate.at("content"));
    approval.qualification_file = digest(predicate, "qualification_file");
    approval.person = text(predicate, "person");
    approval.comment = text(predicate, "comment");
    if (approval.content.release != record.gate) {
      throw std::invalid_argument("of another release");
    }
    return approval;
  });
}

Json statement_of(const SignOff& signoff) {
  Json inputs = Json::array();
  const auto cite = [&](const std::string& id) {
    inputs.push_back({{"uri", "urn:qualify:record:" + id}, {"digest", {{"sha256", id}}}});
  };
  for (const std::string& id : signoff.content.records()) cite(id);
  for (const std::string& id : signoff.approvals) cite(id);
  Json keys = Json::object();
  for (const auto& [file, content] : signoff.key_files) keys[file] = content.str();
  return statement(subjects_of(signoff.content), kVerificationSummaryPredicate,
                   {{"verifier", {{"id", "urn:qualify:state:" + signoff.verifier}}},
                    {"timeVerified", format_time(signoff.time)},
                    {"resourceUri", "urn:qualify:release:" + signoff.content.release},
                    {"policy",
                     {{"uri", "qualification.yaml"},
                      {"digest", {{"sha256", signoff.qualification_file.hex()}}}}},
                    {"inputAttestations", std::move(inputs)},
                    {"verificationResult", "PASSED"},
                    {"verifiedLevels", {"QUALIFY_SIGNED_OFF"}},
                    {"qualify",
                     {{"schema_version", kSchemaVersion},
                      {"content", content_json(signoff.content)},
                      {"approvals", signoff.approvals},
                      {"people", signoff.people},
                      {"needed", signoff.needed},
                      {"key_files", std::move(keys)}}}});
}

Result<SignOff> read_signoff(const ledger::Record& record) {
  return read_back<SignOff>(record, ledger::RecordKind::signoff, [&](const Json& whole) {
    const Json& predicate = whole.at("predicate");
    const Json& own = predicate.at("qualify");
    SignOff signoff;
    signoff.content = read_content(own.at("content"));
    signoff.qualification_file =
        digest(predicate.at("policy").at("digest"), "sha256");  // bare hex is a digest too
    for (const auto& [file, content] : own.at("key_files").items()) {
      signoff.key_files[file] = Digest::parse(content.get<std::string>()).value();
    }
    signoff.approvals = own.at("approvals").get<std::vector<std::string>>();
    signoff.people = own.at("people").get<std::vector<std::string>>();
    signoff.needed = own.at("needed").get<std::uint32_t>();
    const std::string verifier = text(predicate.at("verifier"), "id");
    signoff.verifier =
        verifier.substr(std::min(verifier.size(), std::string("urn:qualify:state:").size()));
    signoff.time = time(predicate, "timeVerified");
    if (signoff.content.release != record.gate) throw std::invalid_argument("of another release");
    return signoff;
  });
}

}  // namespace qualify::certify
