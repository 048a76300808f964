#include "qualify/ledger/ledger.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "support/fake_clock.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"

namespace qualify::ledger {
namespace {

class LedgerTest : public ::testing::Test {
 protected:
  Json statement(int number = 1) const {
    return {{"_type", "https://in-toto.io/Statement/v1"},
            {"subject", Json::array({{{"name", "toy"}, {"digest", {{"sha256", bundle_.hex()}}}}})},
            {"predicateType", "https://in-toto.io/attestation/test-result/v0.1"},
            {"predicate", {{"result", "PASSED"}, {"number", number}}}};
  }
  Record append(int number = 1, RecordKind kind = RecordKind::certificate,
                const std::string& gate = "det") {
    return ledger_
        .append(*signer_, kind, gate, kind == RecordKind::grant ? Digest() : bundle_, clock_.now(),
                statement(number))
        .value();
  }
  std::string sqlite3_tool(const std::string& sql) {
    return test::run_program({SQLITE3_PROGRAM, (folder_ / "a.db").string()}, sql).output;
  }
  /// Changes rows as somebody with the sqlite3 tool and no respect for triggers would.
  void tamper(const std::string& sql) {
    ASSERT_EQ(sqlite3_tool("PRAGMA foreign_keys = OFF; DROP TRIGGER record_no_update;"
                           "DROP TRIGGER record_no_delete; DROP TRIGGER record_no_replace;"
                           "DROP TRIGGER record_no_gap; DROP TRIGGER public_key_no_update; " +
                           sql + ";"),
              "");
  }

  test::TempFolder folder_;
  test::FakeClock clock_;
  journal::Database database_ = journal::Database::open(folder_ / "a.db").value();
  Ledger ledger_{database_};
  std::unique_ptr<Signer> signer_ = create_key(folder_ / "key.pem").value();
  Digest bundle_ = sha256("bundle");
};

TEST_F(LedgerTest, RecordsComeBackInOrderAndVerify) {
  const Record first = append(1);
  const Record second = append(2, RecordKind::grant, "other");
  EXPECT_EQ(first.index, 0);
  EXPECT_EQ(second.index, 1);
  const auto all = ledger_.records().value();
  ASSERT_EQ(all.size(), 2U);
  for (const Record& record : all) EXPECT_TRUE(verify_record(record));
  EXPECT_EQ(all[0].id, first.id);
  EXPECT_EQ(all[0].bundle, bundle_);
  EXPECT_EQ(all[0].time, clock_.now());
  EXPECT_EQ(all[1].bundle, Digest());
  EXPECT_EQ(ledger_.records(RecordKind::grant)->size(), 1U);
  EXPECT_EQ(ledger_.records(RecordKind::grant, "det")->size(), 0U);
  EXPECT_EQ(ledger_.records(std::nullopt, "det")->size(), 1U);
}

TEST_F(LedgerTest, WhatARecordIsAboutIsSigned) {
  const Record record = append();
  const Json signed_part =
      parse_json(record.envelope.payload, "payload")->at("predicate").at("record");
  EXPECT_EQ(signed_part, (Json{{"kind", "certificate"},
                               {"gate", "det"},
                               {"bundle", bundle_.str()},
                               {"time", format_time(clock_.now())}}));
}

TEST_F(LedgerTest, AStatementThatCannotBeVerifiedLaterIsNotSigned) {
  const auto code = [&](Json changed) {
    const auto appended = ledger_.append(*signer_, RecordKind::certificate, "det", bundle_,
                                         clock_.now(), std::move(changed));
    return appended ? "taken" : name_of(appended.error().code);
  };
  Json other = statement();
  other["subject"][0]["digest"]["sha256"] = sha256("another").hex();
  EXPECT_STREQ(code(other), "invalid-input");
  for (const char* member : {"_type", "subject", "predicateType", "predicate"}) {
    Json less = statement();
    less.erase(member);
    EXPECT_STREQ(code(less), "invalid-input") << member;
  }
  Json claims = statement();
  claims["predicate"]["record"] = 1;
  EXPECT_STREQ(code(claims), "invalid-input");
  EXPECT_TRUE(ledger_.records()->empty());
}

TEST_F(LedgerTest, FindTakesAnIdOrItsUniqueBeginning) {
  const Record record = append();
  EXPECT_EQ(ledger_.find(record.id)->index, 0);
  EXPECT_EQ(ledger_.find(record.id.substr(0, 6))->index, 0);
  EXPECT_EQ(ledger_.find(record.id.substr(0, 5)).error().code, Errc::invalid_input);
  EXPECT_EQ(ledger_.find("DEADBEEF").error().code, Errc::invalid_input);
  EXPECT_EQ(ledger_.find("%%%%%%").error().code, Errc::invalid_input);
  const std::string absent = (record.id[0] == '0' ? "1" : "0") + record.id.substr(1);
  EXPECT_EQ(ledger_.find(absent).error().code, Errc::not_found);
}

TEST_F(LedgerTest, TheSameStatementTwiceIsOneRecord) {
  (void)append();
  const auto again =
      ledger_.append(*signer_, RecordKind::certificate, "det", bundle_, clock_.now(), statement());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::already_exists);
  EXPECT_EQ(ledger_.records()->size(), 1U);
}

TEST_F(LedgerTest, HistoryCannotBeRewritten) {
  (void)append(1);
  (void)append(2);
  const std::string before = sqlite3_tool("SELECT hex(signature), * FROM record;");
  for (const char* sql :
       {"UPDATE record SET gate = 'x'", "DELETE FROM record", "UPDATE public_key SET pem = ''",
        "DELETE FROM public_key",
        "INSERT OR REPLACE INTO public_key SELECT key_id, 'x' FROM public_key",
        "INSERT OR REPLACE INTO record SELECT 0, kind, id, 'x', bundle, time, payload_type, "
        "payload, signature, key_id FROM record WHERE position = 0",
        "INSERT OR REPLACE INTO record SELECT 2, kind, id, 'x', bundle, time, payload_type, "
        "payload, signature, key_id FROM record WHERE position = 0",
        "INSERT INTO record SELECT 7, kind, replace(id, substr(id, 1, 1), 'z'), gate, bundle, "
        "time, payload_type, payload, signature, key_id FROM record WHERE position = 0"}) {
    EXPECT_FALSE(database_.execute(sql)) << sql;
    EXPECT_NE(sqlite3_tool(std::string(sql) + ";").find("rror"), std::string::npos) << sql;
  }
  EXPECT_EQ(sqlite3_tool("SELECT hex(signature), * FROM record;"), before);
}

TEST_F(LedgerTest, EveryColumnThatIsTamperedWithIsFound) {
  for (const char* change :
       {"kind = 'grant'", "id = substr(id, 2) || substr(id, 1, 1)", "gate = 'other'",
        "bundle = 'sha256:' || hex(zeroblob(32))", "bundle = NULL", "time = time + 1",
        "payload_type = 'text/plain'", "payload = payload || ' '",
        "payload = replace(payload, 'PASSED', 'FAILED')", "signature = zeroblob(70)",
        "key_id = substr(key_id, 2) || substr(key_id, 1, 1)"}) {
    const test::TempFolder folder;
    journal::Database database = journal::Database::open(folder / "a.db").value();
    Ledger ledger(database);
    const auto appended =
        ledger.append(*signer_, RecordKind::certificate, "det", bundle_, clock_.now(), statement());
    ASSERT_TRUE(appended);
    ASSERT_EQ(
        test::run_program({SQLITE3_PROGRAM, (folder / "a.db").string()},
                          std::string("PRAGMA foreign_keys = OFF;") +
                              "DROP TRIGGER record_no_update; UPDATE record SET " + change + ";")
            .output,
        "");
    const auto records = ledger.records();
    if (!records) {
      EXPECT_EQ(records.error().code, Errc::integrity) << change;
      continue;
    }
    const auto verified = verify_record(records->at(0));
    ASSERT_FALSE(verified) << change;
    EXPECT_EQ(verified.error().code, Errc::integrity) << change;
  }
}

TEST_F(LedgerTest, TwoCertificatesThatChangedPlacesAreFound) {
  (void)append(1);
  (void)append(2);
  tamper(
      "CREATE TABLE t AS SELECT * FROM record;"
      "UPDATE record SET payload = (SELECT payload FROM t WHERE t.position = 1 - record.position),"
      " signature = (SELECT signature FROM t WHERE t.position = 1 - record.position)");
  const auto records = ledger_.records().value();
  for (const Record& record : records) EXPECT_FALSE(verify_record(record));
}

TEST_F(LedgerTest, AKeyThatWasReplacedIsFound) {
  (void)append();
  const auto other = create_key(folder_ / "other.pem").value();
  tamper("UPDATE public_key SET pem = '" + other->public_key().pem() + "'");
  EXPECT_FALSE(verify_record(ledger_.records()->at(0)));
}

TEST_F(LedgerTest, TwoProcessesLeaveOneOrderWithoutGaps) {
  constexpr int kEach = 20;
  std::vector<pid_t> children;
  for (const int start : {1000, 2000}) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto database = journal::Database::open(folder_ / "a.db");
      bool good = database.has_value();
      for (int i = 0; good && i < kEach; ++i) {
        good = Ledger(*database)
                   .append(*signer_, RecordKind::certificate, "det", bundle_, clock_.now(),
                           statement(start + i))
                   .has_value();
      }
      ::_exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const auto records = ledger_.records().value();
  ASSERT_EQ(records.size(), 2U * kEach);
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].index, static_cast<std::int64_t>(i));
    EXPECT_TRUE(verify_record(records[i]));
  }
}

}  // namespace
}  // namespace qualify::ledger
