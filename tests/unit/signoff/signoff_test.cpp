#include "qualify/signoff/signoff.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "qualify/standing/people.hpp"
#include "support/fake_clock.hpp"
#include "support/temp_folder.hpp"

namespace qualify::signoff {
namespace {

using ledger::RecordKind;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kDay = std::chrono::hours(24);

constexpr const char* kYaml =
    "schema_version: 1\n"
    "gates:\n"
    "  one: {kind: repeatability, arm: det, metrics: [loss], max_age: 8d}\n"
    "  cost: {kind: performance, arms: {deterministic: det, nondeterministic: fast}}\n"
    "  two: {kind: repeatability, arm: fast, metrics: [loss]}\n"
    "people:\n"
    "  ana: {keys: [{file: ana.pem.pub}]}\n"
    "  ben: {keys: [{file: ben.pem.pub, until: 2026-02-01T00:00:00Z}]}\n"
    "  eve: {keys: [{file: eve.pem.pub}]}\n"
    "roles:\n"
    "  decide: {people: [ana]}\n"
    "  waive: {people: [ana]}\n"
    "  sign: {people: [ana, ben], needed: 2}\n"
    "releases:\n"
    "  december: {gates: [one, cost, two]}\n";

/// A release of three gates, closed by a certificate, a decision and a waiver; all really signed.
class SignOffTest : public ::testing::Test {
 protected:
  SignOffTest() {
    for (const char* name : {"state", "ana", "ben", "eve", "mallory"}) {
      keys[name] = ledger::create_key(folder / (std::string(name) + ".pem")).value();
    }
    declare(kYaml);
  }

  void declare(const std::string& text) {
    yaml = text;
    qualification = policy::parse_qualification(yaml, folder / "q.yaml").value();
  }
  Digest policy_of(const std::string& gate) const {
    return policy_digest(*qualification.gate(gate));
  }

  ledger::Record append(const std::string& who, RecordKind kind, const std::string& gate,
                        const Digest& of, const Json& statement) {
    clock.advance(std::chrono::seconds(1));
    return ledger::Ledger(database)
        .append(*keys.at(who), kind, gate, of, clock.now(), statement)
        .value();
  }
  ledger::Record certify(const std::string& gate, const Digest& of, const std::string& by = "state",
                         const std::string& verdict = "pass") {
    return append(
        by, RecordKind::certificate, gate, of,
        {{"_type", "https://in-toto.io/Statement/v1"},
         {"subject", Json::array({{{"name", "toy"}, {"digest", {{"sha256", of.hex()}}}}})},
         {"predicateType", "https://in-toto.io/attestation/test-result/v0.1"},
         {"predicate",
          {{"qualify", {{"verdict", verdict}, {"policy", {{"digest", policy_of(gate).str()}}}}}}}});
  }
  certify::Decision accepted() const {
    return {certify::Decision::What::accept,
            "cost",
            "cost-1",
            bundle,
            "toy",
            policy_of("cost"),
            sha256("judgement"),
            certify::Interval{1.02, 1.04},
            {},
            "ana",
            "worth it"};
  }
  ledger::Record decide(const certify::Decision& said, const std::string& by = "ana") {
    return append(by, RecordKind::decision, said.gate, said.bundle, statement_of(said));
  }
  ledger::Record waive(Time until, const std::string& by = "ana") {
    return append(
        by, RecordKind::waiver, "two", Digest(),
        statement_of(certify::Waiver{"two", policy_of("two"), {}, "", until, by, "later"}));
  }
  ledger::Record approve(const std::string& who, const certify::ReleaseContent& content,
                         const std::string& by = {}) {
    return append(by.empty() ? who : by, RecordKind::approval, content.release, Digest(),
                  statement_of(certify::Approval{content, sha256(yaml), who, {}}));
  }

  /// The whole of it; tests change one thing before or after.
  Package package() {
    if (!certificate) certificate = certify("one", bundle);
    if (!decision) decision = decide(accepted());
    if (!waiver) waiver = waive(clock.now() + 30 * kDay);
    const auto people =
        standing::load_people(qualification, standing::keys_beside(qualification.file)).value();
    certify::ReleaseContent content;
    content.release = "december";
    content.gates = {{"one", policy_of("one"), certificate->id, {}, {}, {}},
                     {"cost", policy_of("cost"), "", {decision->id}, {}, {}},
                     {"two", policy_of("two"), "", {}, {waiver->id}, {}}};
    content.bundles = {{"toy", bundle}};
    content.people = standing::people_digest(people);
    if (change) change(content);
    if (verifier.empty()) verifier = keys["state"]->public_key().key_id();
    if (approvals.empty()) approvals = {approve("ana", content), approve("ben", content)};

    Package made{{}, {}, yaml, {}, keys["state"]->public_key()};
    certify::SignOff signoff{content,
                             sha256(yaml),
                             {},
                             {},
                             {"ana", "ben"},
                             2,
                             verifier,
                             clock.now() + std::chrono::seconds(1)};  // when append() signs it
    for (const char* name : {"ana", "ben", "eve"}) {
      const std::string file = std::string(name) + ".pem.pub";
      made.key_files[file] = read_file(folder / file).value();
      signoff.key_files[file] = sha256(made.key_files[file]);
    }
    for (const ledger::Record& each : approvals) signoff.approvals.push_back(each.id);
    made.signoff =
        append(signed_by, RecordKind::signoff, "december", Digest(), statement_of(signoff));
    for (const ledger::Record& each : {*certificate, *decision, *waiver}) {
      made.records.emplace(each.id, each);
    }
    for (const ledger::Record& each : approvals) made.records.emplace(each.id, each);
    return made;
  }
  static std::string faults(const Package& package) {
    std::string all;
    for (const Error& fault : check(package)) all += fault.describe() + "\n";
    return all;
  }

  test::TempFolder folder;
  test::FakeClock clock;
  std::map<std::string, std::unique_ptr<ledger::Signer>> keys;
  journal::Database database = journal::Database::open(folder / "a.db").value();
  std::string yaml;
  policy::Qualification qualification;
  Digest bundle = sha256("bundle");
  std::optional<ledger::Record> certificate, decision, waiver;
  std::vector<ledger::Record> approvals;
  std::function<void(certify::ReleaseContent&)> change;
  std::string signed_by = "state";
  std::string verifier;  ///< the key that the sign-off says it is signed with
};

TEST_F(SignOffTest, WhatWasSignedHolds) {
  EXPECT_THAT(faults(package()), IsEmpty());
}

TEST_F(SignOffTest, AForeignKeyIsNotTheStates) {
  signed_by = "mallory";
  EXPECT_THAT(faults(package()), HasSubstr("signed by a key that is not the state's"));
}

TEST_F(SignOffTest, ACertificateMustBeTheStatesAPassAndOfThisGateBundleAndPolicy) {
  certificate = certify("one", bundle, "ana");
  EXPECT_THAT(faults(package()), HasSubstr("signed by a key that is not the state's"));
  approvals.clear();
  certificate = certify("one", bundle, "state", "fail");
  EXPECT_THAT(faults(package()), HasSubstr("it is no pass"));
  approvals.clear();
  certificate = certify("two", bundle);
  EXPECT_THAT(faults(package()), HasSubstr("is of gate two"));
  approvals.clear();
  certificate = certify("one", sha256("another"));
  EXPECT_THAT(faults(package()), HasSubstr("it is for another bundle 'toy'"));
}

TEST_F(SignOffTest, ACertificateOfAnotherVersionClosesNothing) {
  certificate = certify("one", bundle);
  std::string changed = kYaml;
  changed.replace(changed.find("arm: det, metrics"), 17, "arm: big, metrics");
  declare(changed);
  EXPECT_THAT(faults(package()), HasSubstr("it is of another version of gate one"));
}

TEST_F(SignOffTest, ACertificateMayNotHaveBeenTooOld) {
  certificate = certify("one", bundle);
  clock.advance(8 * kDay);
  EXPECT_THAT(faults(package()), HasSubstr("was too old at the sign-off"));
}

TEST_F(SignOffTest, ADecisionMustAcceptThisAndBeOfWhoeverMayDecide) {
  auto other = accepted();
  other.what = certify::Decision::What::reject;
  decision = decide(other);
  EXPECT_THAT(faults(package()), HasSubstr("it rejects"));
  approvals.clear();
  other = accepted();
  other.bundle = sha256("another");
  decision = decide(other);
  EXPECT_THAT(faults(package()), HasSubstr("it is for another bundle"));
  approvals.clear();
  other = accepted();
  other.interval.reset();
  decision = decide(other);
  EXPECT_THAT(faults(package()), HasSubstr("it answers another question"));
  approvals.clear();
  other = accepted();
  other.person = "ben";
  decision = decide(other, "ben");
  EXPECT_THAT(faults(package()), HasSubstr("ben does not have the role decide"));
  approvals.clear();
  decision = decide(accepted(), "mallory");
  EXPECT_THAT(faults(package()), HasSubstr("is nobody's"));
}

TEST_F(SignOffTest, AWaiverThatHadEndedWaivesNothing) {
  waiver = waive(clock.now() + std::chrono::seconds(2));
  clock.advance(std::chrono::seconds(2));
  EXPECT_THAT(faults(package()), HasSubstr("it had ended before the sign-off"));
}

TEST_F(SignOffTest, AWaiverForOneBundleWaivesForNoOther) {
  certify::Waiver said{"two", policy_of("two"), sha256("another"), "toy", clock.now() + 30 * kDay,
                       "ana", "later"};
  waiver = append("ana", RecordKind::waiver, "two", sha256("another"), statement_of(said));
  EXPECT_THAT(faults(package()), HasSubstr("it is for another bundle 'toy'"));
}

TEST_F(SignOffTest, TheStateThatSignedIsTheOneThatItNames) {
  verifier = std::string(64, 'a');
  EXPECT_THAT(faults(package()), HasSubstr("another state's key"));
}

TEST_F(SignOffTest, NothingIsDatedBeforeWhatTheLogHadAlready) {
  Package made = package();
  // As a forged log has it: an approval that is older than the certificate before it.
  made.records.at(approvals[0].id).time -= 30 * kDay;
  EXPECT_THAT(faults(made), HasSubstr("dated before what the log had already"));
}

TEST_F(SignOffTest, NobodyCountsTwiceAndNobodyWithoutTheRole) {
  Package good = package();
  const auto content = certify::read_signoff(good.signoff)->content;
  approvals = {approve("ana", content), approve("ana", content)};
  EXPECT_THAT(faults(package()), HasSubstr("ana signed already and counts once"));
  EXPECT_THAT(faults(package()), HasSubstr("1 of 2 people with the role sign"));
  approvals = {approve("ana", content), approve("eve", content)};
  EXPECT_THAT(faults(package()), HasSubstr("eve does not have the role sign"));
  approvals = {approve("ana", content), approve("ben", content, "mallory")};
  EXPECT_THAT(faults(package()), HasSubstr("is nobody's"));
  approvals = {approve("ana", content), approve("ben", content, "ana")};
  EXPECT_THAT(faults(package()), HasSubstr("ana signed it in the name of ben"));
}

TEST_F(SignOffTest, AKeyThatWasRetiredBeforeDoesNotCount) {
  waiver = waive(clock.now() + 90 * kDay);
  clock.advance(40 * kDay);  // ben's key ended on 2026-02-01
  EXPECT_THAT(faults(package()), HasSubstr("was not ben's at"));
}

TEST_F(SignOffTest, AnApprovalOfAnotherReleaseOrContentCountsForNothing) {
  const auto content = certify::read_signoff(package().signoff)->content;
  auto other = content;
  other.release = "january";
  approvals = {approve("ana", content), approve("ben", other)};
  EXPECT_THAT(faults(package()), HasSubstr("it approves something else than was signed off"));
  other = content;
  other.bundles["toy"] = sha256("another");
  approvals = {approve("ana", content), approve("ben", other)};
  EXPECT_THAT(faults(package()), HasSubstr("it approves something else than was signed off"));
}

TEST_F(SignOffTest, WhatTheFileSaysIsWhatWasSigned) {
  Package edited = package();
  edited.qualification.replace(edited.qualification.find("needed: 2"), 9, "needed: 1");
  EXPECT_THAT(faults(edited), HasSubstr("qualification.yaml: its content is not what was signed"));
  EXPECT_THAT(faults(edited), HasSubstr("people, keys or roles are not those that were signed"));
  edited = package();
  edited.key_files["ana.pem.pub"] = read_file(folder / "mallory.pem.pub").value();
  EXPECT_THAT(faults(edited), HasSubstr("ana.pem.pub: its content is not what was signed"));
  edited = package();
  edited.key_files.erase("eve.pem.pub");
  EXPECT_THAT(faults(edited), HasSubstr("eve.pem.pub: the key is missing"));
}

TEST_F(SignOffTest, ExactlyWhatIsCitedIsThere) {
  Package edited = package();
  edited.records.erase(decision->id);
  EXPECT_THAT(faults(edited), HasSubstr("is cited and missing"));
  edited = package();
  const auto extra = certify("two", bundle);
  edited.records.emplace(extra.id, extra);
  EXPECT_THAT(faults(edited), HasSubstr("the sign-off does not cite it"));
  EXPECT_THAT(faults(edited), HasSubstr("it came into the log after the sign-off"));
  edited = package();
  std::swap(edited.records.at(certificate->id), edited.records.at(decision->id));
  EXPECT_THAT(faults(edited), HasSubstr("is not the record that its name says"));
}

TEST_F(SignOffTest, AStatementIsNotTakenForAnother) {
  // A waiver's words as a decision, and the other way round.
  const auto content = statement_of(accepted());
  decision = append("ana", RecordKind::waiver, "cost", bundle, content);
  EXPECT_THAT(faults(package()), HasSubstr("stands where a decision is cited"));
  approvals.clear();
  decision = append("ana", RecordKind::decision, "cost", Digest(),
                    statement_of(certify::Waiver{
                        "cost", policy_of("cost"), {}, "", clock.now() + kDay, "ana", "x"}));
  EXPECT_THAT(faults(package()), HasSubstr("not a decision as this program writes it"));
}

TEST_F(SignOffTest, EveryGateOfTheReleaseIsClosedByOneThing) {
  change = [](certify::ReleaseContent& content) { content.gates.pop_back(); };
  EXPECT_THAT(faults(package()), HasSubstr("its gates are not those of the release"));
  approvals.clear();
  change = [&](certify::ReleaseContent& content) { content.gates[0].waivers = {waiver->id}; };
  EXPECT_THAT(faults(package()), HasSubstr("is not closed by exactly one of"));
  approvals.clear();
  change = [](certify::ReleaseContent& content) { content.gates[0].certificate.clear(); };
  EXPECT_THAT(faults(package()), HasSubstr("is not closed by exactly one of"));
  approvals.clear();
  change = [](certify::ReleaseContent& content) { content.bundles["other"] = sha256("x"); };
  EXPECT_THAT(faults(package()), HasSubstr("speaks of bundle 'other'"));
  approvals.clear();
  change = [](certify::ReleaseContent& content) { content.bundles.clear(); };
  EXPECT_THAT(faults(package()), HasSubstr("which is not among those signed"));
}

TEST_F(SignOffTest, TheReportSaysWhatWasSignedWithoutAnyControlCharacter) {
  auto loud = accepted();
  loud.reason = "red \x1b[31m \xc2\x9b";
  decision = decide(loud);
  const std::string report = report_of(package());
  EXPECT_THAT(report, HasSubstr("Release december"));
  EXPECT_THAT(report, HasSubstr(certificate->id));
  EXPECT_EQ(report.find('\x1b'), std::string::npos);
  EXPECT_EQ(report.find('\x9b'), std::string::npos);
}

}  // namespace
}  // namespace qualify::signoff
