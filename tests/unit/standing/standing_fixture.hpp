#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "qualify/standing/people.hpp"
#include "qualify/standing/standing.hpp"
#include "support/fake_clock.hpp"
#include "support/temp_folder.hpp"

namespace qualify::standing {

/// Facts as a database would give them, made by hand; what people say is really signed.
class StandingTest : public ::testing::Test {
 protected:
  using RecordKind = ledger::RecordKind;

  StandingTest() {
    for (const char* name : {"ana", "ben", "eve", "mallory"}) {
      keys[name] = ledger::create_key(folder / (std::string(name) + ".pem")).value();
    }
    declare(
        "  small: {kind: repeatability, arm: det, metrics: [loss], max_age: 8d}\n"
        "  cost: {kind: performance, arms: {deterministic: det, nondeterministic: fast}}\n");
  }

  /// qualification.yaml with these gates; ana and ben decide and waive, one of them suffices, two
  /// of ana, ben and eve sign.
  void declare(const std::string& gates, const std::string& rest = {}) {
    const std::string people =
        "people:\n"
        "  ana: {keys: [{file: ana.pem.pub, until: 2026-06-01T00:00:00Z}]}\n"
        "  ben: {keys: [{file: ben.pem.pub}]}\n"
        "  eve: {keys: [{file: eve.pem.pub}]}\n"
        "roles:\n"
        "  decide: {people: [ana, ben], needed: " +
        std::to_string(deciders) +
        "}\n"
        "  waive: {people: [ana, ben]}\n"
        "  revoke: {people: [ana]}\n"
        "  sign: {people: [ana, ben, eve], needed: 2}\n";
    qualification =
        policy::parse_qualification("schema_version: 1\ngates:\n" + gates + people + rest,
                                    folder / "qualification.yaml")
            .value();
    facts.people = load_people(qualification, keys_beside(qualification.file)).value();
    facts.own_key = "this state's";
  }

  const policy::Gate& gate(const std::string& name) const { return *qualification.gate(name); }

  /// The gate was judged on a bundle just now; a pass is certified.
  GateFacts& judged(const std::string& name, policy::Verdict verdict,
                    const std::string& bundle = "one", std::vector<std::string> reasons = {}) {
    GateFacts& of = facts.gates[name];
    run::QualificationState state;
    state.name = name + "-" + std::to_string(++number);
    state.gate = gate(name);
    state.plan.gate = name;
    state.plan.kind = gate(name).kind;
    state.plan.bundle = sha256(bundle);
    state.plan.policy = policy_digest(gate(name));
    state.plan.scheduler = "local";
    state.verdict = verdict;
    state.reasons = std::move(reasons);
    state.judgement = sha256("judgement of " + state.name);
    state.judged_at = clock.now();
    if (verdict == policy::Verdict::pass) {
      state.certificate = certify(name, {{"toy", state.plan.bundle}});
      of.certificate = state.certificate;
    }
    of.finished = std::move(state);
    return of;
  }

  std::string certify(const std::string& name, std::vector<std::pair<std::string, Digest>> bundles,
                      std::vector<std::string> rests_on = {}) {
    const std::string id = sha256("certificate " + std::to_string(++number)).hex();
    facts.certificates[id] = {
        id, name, policy_digest(gate(name)), clock.now(), bundles, rests_on, "pass", {}};
    return id;
  }

  void seal(const std::string& bundle, const std::string& name = "toy",
            spec::RecipeClass recipe = spec::RecipeClass::debug) {
    facts.bundles.push_back({sha256(bundle), name, recipe, {}});
  }

  /// Signed, and in the log, by a person's key.
  template <class Statement>
  ledger::Record say(const std::string& person, RecordKind kind, const std::string& about,
                     const Digest& bundle, const Statement& statement) {
    const auto record =
        ledger::Ledger(database)
            .append(*keys.at(person), kind, about, bundle, clock.now(), statement_of(statement))
            .value();
    facts.records.push_back(record);
    return record;
  }

  certify::Decision decision_on(const GateFacts& of, certify::Decision::What what) const {
    certify::Decision decision;
    decision.what = what;
    decision.gate = of.finished->plan.gate;
    decision.qualification = of.finished->name;
    decision.bundle = of.finished->plan.bundle;
    decision.bundle_name = "toy";
    decision.policy = of.finished->plan.policy;
    decision.judgement = *of.finished->judgement;
    if (what == certify::Decision::What::convergence) {
      decision.convergence = sha256("the curves");
    } else {
      decision.interval = of.interval;
    }
    decision.reason = "because";
    return decision;
  }
  ledger::Record decide(const std::string& person, certify::Decision decision) {
    decision.person = person;
    return say(person, RecordKind::decision, decision.gate, decision.bundle, decision);
  }
  ledger::Record revoke(const std::string& person, const std::string& record) {
    return say(person, RecordKind::revocation, "", Digest(),
               certify::Revocation{record, RecordKind::certificate, person, "found a fault"});
  }
  ledger::Record waive(const std::string& person, const std::string& name, Time until,
                       std::optional<Digest> bundle = {}) {
    return say(person, RecordKind::waiver, name, bundle.value_or(Digest()),
               certify::Waiver{name, policy_digest(gate(name)), bundle, bundle ? "toy" : "", until,
                               person, "the node is being repaired"});
  }

  Standing of(const std::string& name) const {
    for (Standing& each : standings(qualification, facts, clock.now())) {
      if (each.gate == name) return std::move(each);
    }
    ADD_FAILURE() << "no standing of " << name;
    return {};
  }
  std::string status(const std::string& name) const { return name_of(of(name).status); }
  std::string why(const std::string& name) const {
    std::string all;
    for (const std::string& reason : of(name).reasons) all += reason + "\n";
    return all;
  }

  test::TempFolder folder;
  test::FakeClock clock;  // 2026-01-01
  std::map<std::string, std::unique_ptr<ledger::Signer>> keys;
  journal::Database database = journal::Database::open(folder / "a.db").value();
  policy::Qualification qualification;
  Facts facts;
  int deciders = 1;
  int number = 0;
};

}  // namespace qualify::standing
