#include "qualify/journal/transcript.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "qualify/journal/journal.hpp"
#include "support/fake_clock.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"

namespace qualify::journal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class TranscriptTest : public ::testing::Test {
 protected:
  OpenOptions options() const {
    OpenOptions options;
    options.transcript = file;
    return options;
  }
  Result<Database> open() const { return Database::open(folder / "a.db", options()); }
  void append_anew(int count) const {
    auto database = open().value();
    append(database, count);
  }
  void append(Database& database, int count) const {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(Journal(database).append(clock.now(), {}, {}, 0, "test", {{"n", i}}));
    }
  }
  Transcript read() const { return read_transcript(file).value(); }
  std::vector<std::int64_t> events() const {
    std::vector<std::int64_t> keys;
    for (const TranscriptRow& row : read().rows) {
      if (row.table == "event") keys.push_back(row.key);
    }
    return keys;
  }
  void rewrite(const std::function<void(std::string&)>& change) const {
    std::string text = read_file(file).value();
    change(text);
    ASSERT_TRUE(write_file_atomic(file, text));
  }
  static std::size_t begin_of_line(const std::string& text, int number) {
    std::size_t at = 0;
    for (int i = 1; i < number; ++i) at = text.find('\n', at) + 1;
    return at;
  }

  test::TempFolder folder{test::memory_folder()};
  test::FakeClock clock;
  const fs::path file = folder / "transcript.jsonl";
};

TEST_F(TranscriptTest, HasEveryRowAsItIs) {
  auto database = open().value();
  const auto name = Journal(database).start_qualification(clock.now(), "g", sha256("b"),
                                                          sha256("p"), {{"runs", 2}}, {});
  ASSERT_TRUE(name);
  ASSERT_TRUE(database.transaction([&]() -> Result<void> {
    auto insert = database.prepare("INSERT INTO public_key VALUES ('k', 'pem')").value();
    return insert.step().map([](bool) {});
  }));
  const Transcript transcript = read();
  EXPECT_THAT(transcript.faults, IsEmpty());
  EXPECT_THAT(transcript.rows, SizeIs(3));
  for (const TranscriptRow& row : transcript.rows) {
    for (const GrowingTable& table : growing_tables()) {
      if (row.table != table.name) continue;
      EXPECT_EQ(row_of(database, table, row.key).value()->values, row.values);
    }
  }
}

TEST_F(TranscriptTest, NamesEveryTableThatDoesNotFollowFromOthers) {
  const auto database = open().value();
  auto tables = database
                    .prepare(
                        "SELECT name FROM sqlite_schema WHERE type = 'table' AND "
                        "name NOT LIKE 'sqlite_%' ORDER BY name")
                    .value();
  std::vector<std::string> missing;
  while (tables.step().value()) {
    bool known = false;
    for (const GrowingTable& table : growing_tables())
      known = known || tables.text(0) == table.name;
    if (!known) missing.push_back(tables.text(0));
  }
  EXPECT_THAT(missing, ElementsAre("tree_node"))  // hashes of the records
      << "a table that is not derived belongs into growing_tables()";
}

TEST_F(TranscriptTest, WhatWasRolledBackIsNotInIt) {
  auto database = open().value();
  append(database, 1);
  EXPECT_FALSE(database.transaction([&]() -> Result<void> {
    append(database, 3);
    return fail(Errc::interrupted, "no");
  }));
  append(database, 1);
  EXPECT_THAT(events(), ElementsAre(1, 2));
}

TEST_F(TranscriptTest, ADatabaseThatHadNoneGetsOne) {
  {
    auto database = Database::open(folder / "a.db").value();
    append(database, 3);
  }
  ASSERT_TRUE(open());
  EXPECT_THAT(events(), ElementsAre(1, 2, 3));
}

TEST_F(TranscriptTest, AWriterThatWasKilledBeforeItIsCaughtUpWith) {
  append_anew(2);
  {
    auto without = Database::open(folder / "a.db").value();  // as if killed after COMMIT
    append(without, 2);
  }
  std::ofstream(file, std::ios::app)
      << R"({"after":{"event)";  // and another in the middle of a line
  EXPECT_TRUE(read().torn);
  append_anew(1);
  EXPECT_FALSE(read().torn);
  EXPECT_THAT(events(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(read().faults, IsEmpty());
}

TEST_F(TranscriptTest, TwoWritersTellOneStory) {
  auto first = open().value();
  auto second = open().value();
  for (int i = 0; i < 5; ++i) {
    append(first, 1);
    append(second, 2);
  }
  EXPECT_THAT(events(), SizeIs(15));
  EXPECT_THAT(read().faults, IsEmpty());
}

TEST_F(TranscriptTest, AnOlderCopyOfTheDatabaseIsFoundOut) {
  append_anew(2);
  fs::copy_file(folder / "a.db", folder / "old.db");
  append_anew(1);
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove((folder / "a.db").string() + suffix);
  fs::rename(folder / "old.db", folder / "a.db");
  const auto opened = open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::integrity);
  EXPECT_THAT(opened.error().describe(), HasSubstr("lacks rows of 'event'"));
}

TEST_F(TranscriptTest, ADatabaseThatWentAnotherWayIsFoundOut) {
  append_anew(2);
  (void)test::run_program({SQLITE3_PROGRAM, (folder / "a.db").string()},
                          "DROP TRIGGER event_no_update; UPDATE event SET payload = '{}' WHERE "
                          "sequence = 2;");
  const auto opened = open();
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().describe(), HasSubstr("row 2 of 'event'"));
}

TEST_F(TranscriptTest, EveryFlippedBitCostsItsOwnLineOnly) {
  append_anew(4);
  const std::string whole = read_file(file).value();
  const std::size_t begin = begin_of_line(whole, 2);
  const std::size_t end = begin_of_line(whole, 3);
  auto database = open().value();
  for (std::size_t at = begin; at < end; ++at) {
    for (unsigned bit = 0; bit < 8; bit += 3) {
      rewrite([&](std::string& text) {
        text = whole;
        text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ (1U << bit));
      });
      const Transcript damaged = read();
      ASSERT_THAT(damaged.faults, Not(IsEmpty())) << "byte " << at << " bit " << bit;
      std::vector<std::int64_t> keys;
      for (const TranscriptRow& row : damaged.rows) keys.push_back(row.key);
      ASSERT_THAT(keys, ::testing::IsSupersetOf({1, 4})) << "byte " << at << " bit " << bit;
      // The database has the lost row, and the digest that the line states vouches for it.
      if (std::count(keys.begin(), keys.end(), 2) == 0 && !damaged.faults[0].chain.empty() &&
          damaged.faults[0].chain == parse_json(whole.substr(begin, end - begin - 1), "line")
                                         ->at("chain")
                                         .get<std::string>()) {
        const auto row = row_of(database, growing_tables()[1], 2).value();
        EXPECT_TRUE(is_row_of(damaged.faults[0], *row)) << "byte " << at << " bit " << bit;
      }
    }
  }
}

TEST_F(TranscriptTest, ALineThatWasTakenOutIsMissed) {
  append_anew(4);
  rewrite([&](std::string& text) {
    const std::size_t begin = begin_of_line(text, 2);
    text.erase(begin, begin_of_line(text, 3) - begin);
  });
  EXPECT_THAT(read().faults, Not(IsEmpty()));
}

TEST_F(TranscriptTest, ARowGoesBackAsItWas) {
  const TranscriptRow key{0, "public_key", 7, R"({"key_id":"k","pem":"p"})"};
  const auto database = Database::open(folder / "b.db").value();
  ASSERT_TRUE(insert_row(database, key));
  EXPECT_EQ(row_of(database, growing_tables()[2], 7).value()->values, key.values);
  const TranscriptRow record{
      0, "record", 0,
      R"({"bundle":null,"gate":"g","id":")" + std::string(64, 'a') +
          R"(","key_id":"k","kind":"grant","payload":"{}","payload_type":"t","position":0,)"
          R"("signature":{"hex":"00ff10"},"time":5})"};
  const auto done = insert_row(database, record);
  ASSERT_TRUE(done) << done.error().describe();
  EXPECT_EQ(row_of(database, growing_tables()[3], 0).value()->values, record.values);
}

}  // namespace
}  // namespace qualify::journal
