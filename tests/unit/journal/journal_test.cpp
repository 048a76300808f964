#include "qualify/journal/journal.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "support/fake_clock.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"

namespace qualify::journal {
namespace {

using test::TempFolder;

class JournalTest : public ::testing::Test {
 protected:
  std::string start(const std::string& gate) {
    return journal_
        .start_qualification(clock_.now(), gate, bundle_, policy_, {{"runs", 2}},
                             {{"kind", "repeatability"}})
        .value();
  }
  Result<Event> append(const std::string& qualification, const std::string& run, int attempt,
                       const std::string& kind) {
    return journal_.append(clock_.now(), qualification, run, attempt, kind, {{"nonce", "n"}});
  }
  std::string sqlite3_tool(const std::string& sql) {
    return test::run_program({SQLITE3_PROGRAM, (folder_ / "a.db").string()}, sql).output;
  }

  TempFolder folder_;
  test::FakeClock clock_;
  Database database_ = Database::open(folder_ / "a.db").value();
  Journal journal_{database_};
  Digest bundle_ = sha256("bundle");
  Digest policy_ = sha256("policy");
};

TEST_F(JournalTest, QualificationsOfAGateAreNumberedFromOne) {
  EXPECT_EQ(start("det"), "det-1");
  EXPECT_EQ(start("nondet"), "nondet-1");
  EXPECT_EQ(start("det"), "det-2");
  EXPECT_EQ(journal_.qualifications("det").value(), (std::vector<std::string>{"det-1", "det-2"}));
  EXPECT_EQ(journal_.qualifications().value(),
            (std::vector<std::string>{"det-1", "nondet-1", "det-2"}));
  EXPECT_TRUE(journal_.qualifications("other")->empty());
}

TEST_F(JournalTest, TheFirstEventHasPlanPolicyAndBundle) {
  const std::string name = start("det");
  const auto events = journal_.events(name).value();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, "plan.created");
  const Json payload = parse_json(events[0].payload, "event").value();
  EXPECT_EQ(payload.at("policy"), policy_.str());
  EXPECT_EQ(payload.at("bundle"), bundle_.str());
  EXPECT_EQ(payload.at("plan").at("runs"), 2);
}

TEST_F(JournalTest, EventsComeBackInOrderWithWhatWasWritten) {
  const std::string name = start("det");
  clock_.advance(std::chrono::seconds(1));
  const auto written = append(name, "a1", 1, "attempt.intent").value();
  const auto events = journal_.events(name).value();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_LT(events[0].sequence, events[1].sequence);
  EXPECT_EQ(events[1].sequence, written.sequence);
  EXPECT_EQ(events[1].time, clock_.now());
  EXPECT_EQ(events[1].run, "a1");
  EXPECT_EQ(events[1].attempt, 1);
  EXPECT_EQ(events[1].payload, R"({"nonce":"n"})");
}

TEST_F(JournalTest, OneAttemptHasOneIntent) {
  const std::string name = start("det");
  ASSERT_TRUE(append(name, "a1", 1, "attempt.intent"));
  EXPECT_EQ(append(name, "a1", 1, "attempt.intent").error().code, Errc::already_exists);
  EXPECT_TRUE(append(name, "a1", 2, "attempt.intent"));
  EXPECT_TRUE(append(name, "a2", 1, "attempt.intent"));
  EXPECT_TRUE(append(name, "a1", 1, "attempt.submitted"));
  EXPECT_TRUE(append(name, "a1", 1, "attempt.submitted"));
}

TEST_F(JournalTest, AnEventOfAnUnknownQualificationIsRefused) {
  EXPECT_EQ(append("det-7", "a1", 1, "attempt.intent").error().code, Errc::not_found);
  EXPECT_TRUE(append("", "", 0, "reservation.seen"));
}

TEST_F(JournalTest, HistoryCannotBeRewritten) {
  const std::string name = start("det");
  ASSERT_TRUE(append(name, "a1", 1, "attempt.intent"));
  const std::string before = sqlite3_tool("SELECT * FROM event; SELECT * FROM qualification;");
  for (const char* sql :
       {"UPDATE event SET payload = '{}'", "DELETE FROM event",
        "UPDATE OR REPLACE event SET sequence = 1 WHERE sequence = 2",
        "INSERT OR REPLACE INTO event VALUES (1, 0, 'det-1', '', 0, 'x', '{}')",
        "REPLACE INTO event SELECT NULL, 0, qualification, run, attempt, kind, '{}' FROM event "
        "WHERE kind = 'attempt.intent'",
        "UPDATE qualification SET policy = ''", "DELETE FROM qualification",
        "INSERT OR REPLACE INTO qualification VALUES (9, 'det-1', 'other', 9, '', '', 0)",
        "INSERT OR REPLACE INTO qualification VALUES (9, 'x', 'det', 1, '', '', 0)",
        "INSERT OR REPLACE INTO qualification VALUES (1, 'x', 'x', 1, '', '', 0)"}) {
    EXPECT_FALSE(database_.execute(sql)) << sql;
    EXPECT_NE(sqlite3_tool(std::string(sql) + ";").find("rror"), std::string::npos) << sql;
  }
  EXPECT_EQ(sqlite3_tool("SELECT * FROM event; SELECT * FROM qualification;"), before);
}

TEST_F(JournalTest, APayloadIsAnObject) {
  const std::string name = start("det");
  EXPECT_FALSE(journal_.append(clock_.now(), name, "", 0, "x", Json::array()));
  EXPECT_EQ(journal_.events(name)->size(), 1U);
}

TEST_F(JournalTest, SeveralAppendsInOneTransactionAreOneChange) {
  const std::string name = start("det");
  const auto done = database_.transaction([&]() -> Result<void> {
    EXPECT_TRUE(append(name, "a1", 1, "attempt.intent"));
    start("det");
    return fail(Errc::interrupted, "no");
  });
  EXPECT_FALSE(done);
  EXPECT_EQ(journal_.events(name)->size(), 1U);
  EXPECT_EQ(journal_.qualifications("det")->size(), 1U);
}

TEST_F(JournalTest, TwoProcessesLoseNothing) {
  constexpr int kEach = 50;
  const std::string name = start("det");
  std::vector<pid_t> children;
  for (const char* run : {"a1", "a2"}) {
    const pid_t child = ::fork();
    if (child == 0) {
      // A connection may not cross fork(): the child opens its own.
      bool good = true;
      auto database = Database::open(folder_ / "a.db");
      for (int i = 1; good && i <= kEach; ++i) {
        good = database && Journal(*database).append(clock_.now(), name, run, i, "attempt.intent",
                                                     {{"nonce", std::to_string(i)}});
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
  const auto events = journal_.events(name).value();
  EXPECT_EQ(events.size(), 1U + 2U * kEach);
  for (std::size_t i = 1; i < events.size(); ++i) {
    EXPECT_LT(events[i - 1].sequence, events[i].sequence);
  }
}

}  // namespace
}  // namespace qualify::journal
