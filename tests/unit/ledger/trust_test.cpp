#include "qualify/ledger/trust.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/fake_clock.hpp"
#include "support/temp_folder.hpp"

namespace qualify::ledger {
namespace {

class TrustTest : public ::testing::Test {
 protected:
  std::unique_ptr<Signer> key(const std::string& name) {
    return create_key(folder_ / (name + ".pem")).value();
  }
  Record approve(const Signer& signer) {
    const Json statement = {
        {"_type", "https://in-toto.io/Statement/v1"},
        {"subject", Json::array({{{"name", "r"}, {"digest", {{"sha256", bundle_.hex()}}}}})},
        {"predicateType", "https://slsa.dev/verification_summary/v1"},
        {"predicate", {{"number", next_++}}}};
    return Ledger(database_)
        .append(signer, RecordKind::certificate, "r", bundle_, clock_.now(), statement)
        .value();
  }
  static Person person(const std::string& name, const Signer& signer, std::optional<Time> from = {},
                       std::optional<Time> until = {}) {
    return {name, {{signer.public_key(), from, until}}};
  }
  static std::string faults(std::vector<Person> persons, std::vector<Role> roles) {
    const auto trust = Trust::make(std::move(persons), std::move(roles));
    return trust ? "" : trust.error().describe();
  }

  test::TempFolder folder_;
  test::FakeClock clock_;
  journal::Database database_ = journal::Database::open(folder_ / "a.db").value();
  Digest bundle_ = sha256("bundle");
  int next_ = 0;
  std::unique_ptr<Signer> ada_ = key("ada");
  std::unique_ptr<Signer> bob_ = key("bob");
  std::unique_ptr<Signer> eve_ = key("eve");
};

TEST_F(TrustTest, ARoleSaysHowManyItTakes) {
  const Trust trust =
      Trust::make({person("ada", *ada_), person("bob", *bob_), person("eve", *eve_)},
                  {{"sign-off", {"ada", "bob", "eve"}, 2}})
          .value();
  EXPECT_EQ(trust.threshold("sign-off"), 2U);
  EXPECT_EQ(trust.threshold("nobody's"), 1U);
  EXPECT_EQ(trust.signer_of(approve(*ada_), "sign-off").value(), "ada");
  EXPECT_EQ(trust.signer_of(approve(*bob_), "sign-off").value(), "bob");
}

TEST_F(TrustTest, APersonIsOneByWhateverKey) {
  const auto second = key("ada-2");
  const Trust trust = Trust::make({{"ada",
                                    {{ada_->public_key(), std::nullopt, std::nullopt},
                                     {second->public_key(), std::nullopt, std::nullopt}}},
                                   person("bob", *bob_)},
                                  {{"sign-off", {"ada", "bob"}, 2}})
                          .value();
  EXPECT_EQ(trust.signer_of(approve(*ada_), "sign-off").value(), "ada");
  EXPECT_EQ(trust.signer_of(approve(*second), "sign-off").value(), "ada");
}

TEST_F(TrustTest, OneKeyUnderTwoNamesIsRefused) {
  EXPECT_NE(faults({person("ada", *ada_), person("bob", *ada_)}, {{"r", {"ada", "bob"}, 2}})
                .find("has the key of ada"),
            std::string::npos);
}

TEST_F(TrustTest, AnUnknownKeyAndAPersonWithoutTheRoleCountForNothing) {
  const Trust trust = Trust::make({person("ada", *ada_), person("bob", *bob_)},
                                  {{"waive", {"bob"}, 1}, {"sign-off", {"ada"}, 1}})
                          .value();
  EXPECT_EQ(trust.signer_of(approve(*eve_), "sign-off").error().code, Errc::refused);
  EXPECT_NE(
      trust.signer_of(approve(*bob_), "sign-off").error().message.find("does not have the role"),
      std::string::npos);
  EXPECT_EQ(trust.signer_of(approve(*ada_), "none").error().code, Errc::not_found);
}

TEST_F(TrustTest, ARetiredKeyKeepsItsPastAndHasNoFuture) {
  const Time retired = clock_.now() + std::chrono::hours(1);
  const auto fresh = key("ada-2");
  const Trust trust = Trust::make({{"ada",
                                    {{ada_->public_key(), std::nullopt, retired},
                                     {fresh->public_key(), retired, std::nullopt}}}},
                                  {{"sign-off", {"ada"}, 1}})
                          .value();
  const Record before = approve(*ada_);
  const Record too_early = approve(*fresh);
  clock_.set(retired);
  const Record after = approve(*ada_);
  const Record now = approve(*fresh);
  EXPECT_EQ(trust.signer_of(before, "sign-off").value(), "ada");
  EXPECT_EQ(trust.signer_of(now, "sign-off").value(), "ada");
  EXPECT_EQ(trust.signer_of(after, "sign-off").error().code, Errc::refused);
  EXPECT_EQ(trust.signer_of(too_early, "sign-off").error().code, Errc::refused);
  // Dating it back needs a clock that runs behind the log, and the log does not let it.
  clock_.set(retired - std::chrono::hours(2));
  EXPECT_EQ(trust.signer_of(approve(*ada_), "sign-off").error().code, Errc::refused);
}

TEST_F(TrustTest, ARecordThatWasTamperedWithIsAnIntegrityFault) {
  const Trust trust = Trust::make({person("ada", *ada_)}, {{"sign-off", {"ada"}, 1}}).value();
  Record record = approve(*ada_);
  record.gate = "other";
  EXPECT_EQ(trust.signer_of(record, "sign-off").error().code, Errc::integrity);
}

TEST_F(TrustTest, RolesThatCannotWorkAreAllNamedAtOnce) {
  const std::string found =
      faults({person("ada", *ada_), person("ada", *bob_), {"eve", {}}}, {{"a", {"ada"}, 2},
                                                                         {"b", {"ada", "ada"}, 1},
                                                                         {"c", {"zoe"}, 1},
                                                                         {"d", {"ada"}, 0},
                                                                         {"a", {"ada"}, 1}});
  for (const char* part :
       {"the name is there twice", "has no key", "needs 2 persons and has 1", "names ada twice",
        "names zoe, who is no signer", "at least 1", "the role is there twice"}) {
    EXPECT_NE(found.find(part), std::string::npos) << part << " in\n" << found;
  }
}

}  // namespace
}  // namespace qualify::ledger
