#include "qualify/ledger/log.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "qualify/ledger/base64.hpp"
#include "qualify/ledger/merkle.hpp"
#include "support/fake_clock.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"

namespace qualify::ledger {
namespace {

class LogTest : public ::testing::Test {
 protected:
  Record append(int number) {
    const Json statement = {
        {"_type", "https://in-toto.io/Statement/v1"},
        {"subject", Json::array({{{"name", "toy"}, {"digest", {{"sha256", bundle_.hex()}}}}})},
        {"predicateType", "https://in-toto.io/attestation/test-result/v0.1"},
        {"predicate", {{"result", "PASSED"}, {"number", number}}}};
    return Ledger(database_)
        .append(*signer_, RecordKind::certificate, "det", bundle_, clock_.now(), statement)
        .value();
  }
  void append_many(int count) {
    const auto done = database_.transaction([&]() -> Result<void> {
      for (int i = 0; i < count; ++i) (void)append(next_++);
      return {};
    });
    ASSERT_TRUE(done);
  }
  SignedCheckpoint checkpoint() { return log_.checkpoint(log_signer_, clock_.now()).value(); }
  LogAudit audit(const std::vector<std::string>& remembered = {}) {
    return audit_log(database_, log_signer_.verifier(), remembered, 2);
  }
  /// All faults as one text.
  std::string faults(const std::vector<std::string>& remembered = {}) {
    std::string text;
    for (const Error& fault : audit(remembered).faults) {
      EXPECT_EQ(fault.code, Errc::integrity) << fault.describe();
      text += fault.describe() + "\n";
    }
    return text;
  }
  /// Changes the file as somebody who owns it can.
  void attack(const std::string& sql) {
    std::string script = "PRAGMA foreign_keys = OFF;";
    auto triggers = database_.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'");
    while (triggers->step().value()) script += "DROP TRIGGER " + triggers->text(0) + ";";
    const auto ran =
        test::run_program({SQLITE3_PROGRAM, (folder_ / "a.db").string()}, script + sql + ";");
    ASSERT_EQ(ran.output, "");
  }

  test::TempFolder folder_;
  test::FakeClock clock_;
  journal::Database database_ = journal::Database::open(folder_ / "a.db").value();
  Log log_{database_};
  std::unique_ptr<Signer> signer_ = create_key(folder_ / "key.pem").value();
  LogSigner log_signer_ = LogSigner::create(folder_ / "log.pem", "qualify.example.org").value();
  Digest bundle_ = sha256("bundle");
  int next_ = 0;
};

TEST_F(LogTest, EveryAppendIsALeaf) {
  std::vector<Digest> roots = {log_.root(0).value()};
  for (int i = 0; i < 20; ++i) {
    const Record record = append(i);
    EXPECT_EQ(log_.size().value(), static_cast<std::uint64_t>(i) + 1);
    roots.push_back(log_.root(static_cast<std::uint64_t>(i) + 1).value());
    const Digest leaf = merkle::leaf_hash(leaf_of(record.envelope, signer_->public_key()));
    for (std::uint64_t n = 1; n <= static_cast<std::uint64_t>(i) + 1; ++n) {
      EXPECT_TRUE(merkle::verify_consistency(
          n, static_cast<std::uint64_t>(i) + 1, roots[n], roots.back(),
          log_.prove_consistency(n, static_cast<std::uint64_t>(i) + 1).value()));
    }
    const auto index = static_cast<std::uint64_t>(i);
    EXPECT_TRUE(merkle::verify_inclusion(
        index, index + 1, leaf, log_.prove_inclusion(index, index + 1).value(), roots.back()));
  }
  EXPECT_EQ(log_.root(21).error().code, Errc::integrity);
}

TEST_F(LogTest, ALeafIsTheCanonicalHashedrekord) {
  const Record record = append(1);
  const std::string leaf = leaf_of(record.envelope, signer_->public_key());
  const Json body = parse_json(leaf, "leaf").value();
  EXPECT_EQ(canonical_bytes(body), leaf);
  EXPECT_EQ(body.at("kind"), "hashedrekord");
  EXPECT_EQ(body.at("apiVersion"), "0.0.2");
  const Json& spec = body.at("spec").at("hashedRekordV002");
  EXPECT_EQ(spec.at("signature").at("content"), base64_encode(record.envelope.signature));
  EXPECT_EQ(spec.at("signature").at("verifier").at("publicKey").at("rawBytes"),
            base64_encode(signer_->public_key().spki_der()));
}

TEST_F(LogTest, ACheckpointIsMadeOnceForEachSize) {
  append_many(3);
  const SignedCheckpoint first = checkpoint();
  EXPECT_EQ(first.checkpoint.size, 3U);
  clock_.advance(std::chrono::hours(1));
  EXPECT_EQ(checkpoint().note, first.note);
  append_many(1);
  EXPECT_NE(checkpoint().note, first.note);
  EXPECT_EQ(log_.checkpoints()->size(), 2U);
  EXPECT_EQ(log_.latest().value()->checkpoint.size, 4U);
}

TEST_F(LogTest, AnEntryProvesItselfAndNothingElse) {
  append_many(5);
  const SignedCheckpoint head = checkpoint();
  const auto records = Ledger(database_).records().value();
  const auto& key = signer_->public_key();
  for (const Record& record : records) {
    const Json entry = log_.entry(record, head, log_signer_.verifier()).value();
    EXPECT_TRUE(verify_entry(entry, record.envelope, key, log_signer_.verifier()));
  }
  const Json entry = log_.entry(records[2], head, log_signer_.verifier()).value();
  EXPECT_FALSE(verify_entry(entry, records[3].envelope, key, log_signer_.verifier()));
  const auto broken = [&](const char* pointer, Json value) {
    Json changed = entry;
    changed[Json::json_pointer(pointer)] = std::move(value);
    return !verify_entry(changed, records[2].envelope, key, log_signer_.verifier());
  };
  EXPECT_TRUE(broken("/logIndex", "3"));
  EXPECT_TRUE(broken("/inclusionProof/logIndex", "3"));
  EXPECT_TRUE(broken("/inclusionProof/treeSize", "6"));
  EXPECT_TRUE(broken("/inclusionProof/rootHash", base64_encode(std::string(32, 'x'))));
  EXPECT_TRUE(broken("/inclusionProof/hashes/0", base64_encode(std::string(32, 'x'))));
  EXPECT_TRUE(broken("/inclusionProof/hashes", Json::array()));
  EXPECT_TRUE(broken("/inclusionProof/hashes/0", 7));
  EXPECT_TRUE(broken("/logId/keyId", "AAAA"));
  EXPECT_TRUE(broken("/kindVersion/version", "0.0.1"));
  EXPECT_TRUE(broken("/inclusionProof", nullptr));
  append_many(1);
  EXPECT_EQ(log_.entry(append(99), head, log_signer_.verifier()).error().code, Errc::invalid_input);
}

TEST_F(LogTest, RecordsOfAnOlderSchemaAreTakenIn) {
  append_many(9);
  const Digest root = log_.root(9).value();
  attack("DELETE FROM tree_node");
  EXPECT_EQ(log_.size().value(), 0U);
  EXPECT_EQ(checkpoint().checkpoint.root, root);
  EXPECT_EQ(faults(), "");
}

TEST_F(LogTest, ASoundLogHasNoFaults) {
  append_many(10);
  const std::string kept = checkpoint().note;
  append_many(7);
  (void)checkpoint();
  const LogAudit audit_result = audit({kept});
  EXPECT_TRUE(audit_result.faults.empty());
  EXPECT_EQ(audit_result.size, 17U);
  EXPECT_EQ(audit_result.checkpoints, 3U);
  EXPECT_EQ(audit_result.root, log_.root(17).value());
}

TEST_F(LogTest, AnEmptyLogIsSound) {
  EXPECT_EQ(faults(), "");
}

TEST_F(LogTest, AnEditedRecordIsFound) {
  append_many(6);
  (void)checkpoint();
  attack("UPDATE record SET payload = replace(payload, 'PASSED', 'FAILED') WHERE position = 3");
  const std::string found = faults();
  EXPECT_NE(found.find("record 3"), std::string::npos) << found;
  EXPECT_NE(found.find("rewritten"), std::string::npos) << found;
}

TEST_F(LogTest, AValidRecordInPlaceOfAnotherIsFound) {
  // Signed with the right key over other content: only the log can tell.
  append_many(4);
  (void)checkpoint();
  test::TempFolder other_folder;
  auto other = journal::Database::open(other_folder / "b.db").value();
  std::swap(database_, other);
  (void)append(77);
  const Record forged = Ledger(database_).records()->at(0);
  std::swap(database_, other);
  attack("UPDATE record SET id = '" + forged.id + "', payload = '" + forged.envelope.payload +
         "', signature = x'" +
         to_hex({reinterpret_cast<const std::uint8_t*>(forged.envelope.signature.data()),
                 forged.envelope.signature.size()}) +
         "' WHERE position = 2");
  EXPECT_TRUE(verify_record(Ledger(database_).records()->at(2)));
  EXPECT_NE(faults().find("rewritten"), std::string::npos);
}

TEST_F(LogTest, RecordsThatChangedPlacesAreFound) {
  append_many(4);
  (void)checkpoint();
  attack(
      "CREATE TEMP TABLE t AS SELECT * FROM record; DELETE FROM record WHERE position IN (1, 2);"
      "INSERT INTO record SELECT 3 - position, kind, id, gate, bundle, time, payload_type, "
      "payload, signature, key_id FROM t WHERE position IN (1, 2)");
  const std::string found = faults();
  EXPECT_NE(found.find("rewritten"), std::string::npos) << found;
  EXPECT_NE(found.find("tree nodes are not those"), std::string::npos) << found;
}

TEST_F(LogTest, ACutLogIsFound) {
  append_many(8);
  (void)checkpoint();
  attack("DELETE FROM record WHERE position >= 6");
  EXPECT_NE(faults().find("the log was cut: it has 6 records, and signed for 8"),
            std::string::npos);
}

TEST_F(LogTest, ARecordThatIsMissingIsNamed) {
  append_many(8);
  attack("DELETE FROM record WHERE position = 5");
  EXPECT_NE(faults().find("record 5 is missing"), std::string::npos);
}

TEST_F(LogTest, ALogThatWasRolledBackWithItsCheckpointsIsFoundByAnOlderOne) {
  append_many(4);
  (void)checkpoint();
  append_many(4);
  const std::string kept_elsewhere = checkpoint().note;
  attack(
      "DELETE FROM checkpoint WHERE size > 4; DELETE FROM record WHERE position >= 4;"
      "DELETE FROM tree_node WHERE (position + 1) << level > 4");
  EXPECT_EQ(faults(), "");  // by itself it looks like the log it once was
  EXPECT_NE(faults({kept_elsewhere}).find("cut"), std::string::npos);
}

TEST_F(LogTest, AForkIsFoundByTheOtherBranchsCheckpoint) {
  append_many(4);
  (void)checkpoint();
  const auto before = test::run_program({SQLITE3_PROGRAM, (folder_ / "a.db").string()},
                                        "VACUUM INTO '" + (folder_ / "fork.db").string() + "';");
  ASSERT_EQ(before.output, "");
  append_many(3);
  auto fork = journal::Database::open(folder_ / "fork.db").value();
  std::swap(database_, fork);
  next_ = 1000;
  append_many(3);
  const std::string other_branch = checkpoint().note;
  std::swap(database_, fork);
  (void)checkpoint();
  EXPECT_EQ(faults(), "");
  EXPECT_NE(faults({other_branch}).find("rewritten"), std::string::npos);
}

TEST_F(LogTest, ARewrittenLogGetsNoFurtherCheckpoint) {
  append_many(4);
  (void)checkpoint();
  attack(
      "DELETE FROM tree_node; CREATE TEMP TABLE t AS SELECT * FROM record; DELETE FROM record;"
      "INSERT INTO record SELECT 3 - position, kind, id, gate, bundle, time, payload_type, "
      "payload, signature, key_id FROM t");
  const auto made = log_.checkpoint(log_signer_, clock_.now());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::integrity);
}

TEST_F(LogTest, AForgedCheckpointIsFound) {
  append_many(4);
  (void)checkpoint();
  attack(
      "UPDATE checkpoint SET note = replace(note, char(10) || '4' || char(10), char(10) || "
      "'3' || char(10)), size = 3");
  EXPECT_NE(faults().find("signature is wrong"), std::string::npos);
}

TEST_F(LogTest, TimeNeverGoesBackAlongTheLog) {
  const Time later = append(1).time;
  clock_.set(later - std::chrono::hours(5));
  EXPECT_EQ(append(2).time, later);
  EXPECT_EQ(faults(), "");
}

TEST_F(LogTest, ARecordThatWasDatedBackIsFound) {
  // Signed in another state, where nothing newer stood before it, and then put in here.
  (void)append(1);
  test::TempFolder other_folder;
  auto other = journal::Database::open(other_folder / "b.db").value();
  std::swap(database_, other);
  clock_.set(clock_.now() - std::chrono::hours(5));
  (void)append(2);
  std::swap(database_, other);
  attack("ATTACH '" + (other_folder / "b.db").string() +
         "' AS b; INSERT INTO record SELECT 1, kind, id, gate, bundle, time, payload_type, "
         "payload, signature, key_id FROM b.record");
  ASSERT_TRUE(log_.extend());
  EXPECT_NE(faults().find("dated back"), std::string::npos);
}

TEST_F(LogTest, CheckpointsWithoutAKeyToCheckThemAreAFault) {
  append_many(1);
  EXPECT_TRUE(audit_log(database_, std::nullopt, {}, 1).faults.empty());
  (void)checkpoint();
  EXPECT_EQ(audit_log(database_, std::nullopt, {}, 1).faults.size(), 1U);
}

TEST_F(LogTest, OneThreadAndManyFindTheSame) {
  append_many(12);
  attack("UPDATE record SET gate = 'x' WHERE position % 3 = 0");
  const auto one = audit_log(database_, std::nullopt, {}, 1);
  const auto many = audit_log(database_, std::nullopt, {}, 4);
  ASSERT_EQ(one.faults.size(), 4U);
  ASSERT_EQ(many.faults.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(one.faults[i].describe(), many.faults[i].describe());
  }
}

}  // namespace
}  // namespace qualify::ledger
