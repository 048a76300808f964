#include "composite_check.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "qualify/certify/records.hpp"
#include "support/fake_clock.hpp"

namespace qualify::verify {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A coverage certificate at position 10 that rests on two others of the days before.
class CompositeCheck : public ::testing::Test {
 protected:
  CompositeCheck() {
    policy::Gate gate;
    gate.name = "matrix";
    gate.kind = policy::GateKind::coverage;
    gate.max_age = 8 * 24h;
    gate.coverage = {{"toy", "repeat", "cost"}};
    says.composite = gate;
    says.parts = {{"toy/correctness", "repeat", "c1", {}}, {"toy/performance", "cost", "c2", {}}};
    const Time now = clock.now();
    own = {"matrix", 10, now, "pass", {sha256("one")}};
    citable.certificates["c1"] = {"repeat", 3, now - 24h, "pass", {sha256("one")}};
    citable.certificates["c2"] = {"cost", 5, now - 48h, "pass", {sha256("one")}};
  }
  std::vector<std::string> faults() const { return composite_faults(says, own, citable); }

  test::FakeClock clock;
  certify::Certified says;
  CitedCertificate own;
  Citable citable;
};

TEST_F(CompositeCheck, FindsNothingWhereAllPartsWereClosed) {
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(CompositeCheck, NamesAPartThatWasNotClosedThen) {
  auto& part = citable.certificates["c1"];
  const auto good = part;
  part.verdict = "fail";
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("toy/correctness: certificate c1 is no pass")));
  part = good;
  part.gate = "cost";
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("is of gate cost")));
  part = good;
  part.index = 11;
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("came later")));
  part = good;
  part.time = own.time - 8 * 24h;
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("was too old")));
  part = good;
  part.subjects = {sha256("two")};
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("is none of its subjects")));
  citable.certificates.erase("c1");
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("is not in the ledger")));
}

TEST_F(CompositeCheck, MindsRevocationsFromBeforeOnly) {
  citable.revoked["c1"].index = 11;
  EXPECT_THAT(faults(), IsEmpty());
  citable.revoked["c1"].index = 9;
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("was revoked already")));
}

TEST_F(CompositeCheck, WantsDecisionsOnThatGateFromBefore) {
  says.parts[1] = {"toy/performance", "cost", "", {"d1"}};
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("decision d1 is not in the ledger")));
  ledger::Record record;
  certify::Decision said;
  said.gate = "cost";
  said.person = "ana";
  said.interval = certify::Interval{1.02, 1.04};
  const auto record_of = [&](certify::Decision::What what) {
    said.what = what;
    Json statement = statement_of(said);
    record.kind = ledger::RecordKind::decision;
    record.envelope.payload = canonical_bytes(statement);
    return record;
  };
  record.id = "d1";
  record.gate = "cost";
  record.index = 7;
  citable.decisions["d1"] = record_of(certify::Decision::What::reject);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("rejects it")));
  citable.decisions["d1"] = record_of(certify::Decision::What::accept);
  EXPECT_THAT(faults(), IsEmpty());
  citable.decisions["d1"].gate = "repeat";
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("on another gate")));
  citable.decisions["d1"].gate = "cost";
  citable.revoked["d1"].index = 8;
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("revoked already")));
}

TEST_F(CompositeCheck, WantsExactlyThePartsOfItsGate) {
  says.parts[0].name = "other/correctness";
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("has no such part")));
  says.parts.pop_back();
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("it cites 1 parts, its gate has 2")));
}

}  // namespace
}  // namespace qualify::verify
