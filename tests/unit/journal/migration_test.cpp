// Databases of older schemas, as files that older programs left (tests/data/databases), are brought
// forward with a copy first.
#include <gmock/gmock.h>

#include "qualify/base/files.hpp"
#include "qualify/journal/database.hpp"
#include "support/program.hpp"
#include "support/system_calls.hpp"
#include "support/temp_folder.hpp"

namespace qualify::journal {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Migration : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { begin_anew(); }
  void begin_anew() {
    for (const auto& entry : fs::directory_iterator(folder.path())) fs::remove_all(entry.path());
    fs::copy_file(fs::path(DATABASES) / ("schema-" + std::to_string(GetParam()) + ".db"), file);
    fs::permissions(file, fs::perms::owner_all);
  }
  std::string ask(const fs::path& database, const std::string& sql) const {
    return test::run_program({SQLITE3_PROGRAM, database.string()}, sql).output;
  }
  /// Everything that the older schema knew, whatever has been added since.
  std::string rows_of(const fs::path& database) const {
    std::string tables = "SELECT * FROM qualification; SELECT * FROM event;";
    if (GetParam() >= 2)
      tables += "SELECT *, hex(signature) FROM record; SELECT * FROM public_key;";
    return ask(database, tables);
  }
  std::vector<fs::path> beside(const std::string& part) const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      if (entry.path().filename().string().find(part) != std::string::npos) {
        found.push_back(entry.path());
      }
    }
    return found;
  }
  void expect_copy() const {
    EXPECT_EQ(ask(copy, "PRAGMA integrity_check; PRAGMA user_version; PRAGMA application_id;"),
              "ok\n" + std::to_string(GetParam()) + "\n1363953241\n");
    EXPECT_EQ(rows_of(copy), before);
  }

  test::TempFolder folder;
  const fs::path file = folder / "qualify.db";
  const fs::path copy = folder / ("qualify.db.before-000" + std::to_string(GetParam() + 1));
  const std::string before =
      rows_of(fs::path(DATABASES) / ("schema-" + std::to_string(GetParam()) + ".db"));
};

TEST_P(Migration, CopiesTheDatabaseFirstAndKeepsEveryRow) {
  ASSERT_THAT(before, HasSubstr("attempt.intent"));
  {
    const auto database = Database::open(file);
    ASSERT_TRUE(database) << database.error().describe();
    ASSERT_THAT(database->notes(), SizeIs(1));
    EXPECT_THAT(database->notes()[0], HasSubstr(copy.filename().string()));
  }
  EXPECT_EQ(rows_of(file), before);
  expect_copy();
  const auto again = Database::open(file);
  EXPECT_THAT(again->notes(), IsEmpty());
  EXPECT_THAT(beside("before"), SizeIs(1)) << "a database that is up to date is not copied";
}

TEST_P(Migration, AnOlderProgramsLaterRowsAreCopiedToo) {
  { ASSERT_TRUE(Database::open(file)); }
  const auto first = hash_file(copy)->digest;
  // The copy was put back, the older program went on, and the newer one came again.
  ASSERT_TRUE(fs::remove(file));
  fs::copy_file(copy, file);
  fs::permissions(file, fs::perms::owner_all);
  ask(file, "INSERT INTO event VALUES (100, 1, NULL, '', 0, 'later', '{}');");
  { ASSERT_TRUE(Database::open(file)); }
  EXPECT_EQ(hash_file(copy)->digest, first) << "a copy that was there was replaced";
  EXPECT_THAT(ask(copy.string() + ".2", "SELECT kind FROM event;"), HasSubstr("later"));
}

TEST_P(Migration, AFailureLeavesDatabaseAndCopyWhole) {
  // The next migration's first table is there already, as something else.
  const char* table = GetParam() == 1 ? "public_key" : "tree_node";
  ask(file, std::string("CREATE TABLE ") + table + " (theirs);");
  const std::string schema = ask(file, "SELECT sql FROM sqlite_schema;");
  const auto opened = Database::open(file);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().describe(), HasSubstr(copy.string()));
  EXPECT_EQ(ask(file, "SELECT sql FROM sqlite_schema;"), schema);
  EXPECT_EQ(ask(file, "PRAGMA integrity_check; PRAGMA user_version;"),
            "ok\n" + std::to_string(GetParam()) + "\n");
  expect_copy();
  EXPECT_FALSE(Database::open(file));
  EXPECT_THAT(beside("before"), SizeIs(1)) << "each try left another copy of the same";
}

TEST_P(Migration, ADamagedDatabaseIsLeftAsItIs) {
  std::string content = read_file(file).value();
  const std::size_t pages = content.size() / 4096;
  content.replace((pages - 1) * 4096, 64, std::string(64, '\x7f'));
  content.replace((pages - 2) * 4096, 64, std::string(64, '\x7f'));
  ASSERT_TRUE(write_file_atomic(file, content));
  const auto opened = Database::open(file);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::integrity);
  EXPECT_THAT(opened.error().describe(), HasSubstr("qualify doctor --rebuild"));
  EXPECT_EQ(ask(file, "PRAGMA user_version;"), std::to_string(GetParam()) + "\n");
}

INSTANTIATE_TEST_SUITE_P(Schema, Migration, ::testing::Values(1, 2),
                         ::testing::PrintToStringParamName());

class MigrationWalk : public Migration {};

TEST_P(MigrationWalk, KilledAtAnyStepItLosesNothing) {
  const int kills = test::kill_at_every_step(
      {DATABASE_ONCE, file.string()}, test::file_calls(), [&](const std::string& point) {
        EXPECT_EQ(rows_of(file), before) << point;
        const bool migrated =
            ask(file, "PRAGMA user_version;") != std::to_string(GetParam()) + "\n";
        if (migrated) {
          EXPECT_TRUE(fs::exists(copy)) << point << ": migrated, and no copy";
        }
        if (fs::exists(copy)) expect_copy();
        // The next command works, and leaves one copy and nothing else.
        const auto next = Database::open(file);
        ASSERT_TRUE(next) << point << ": " << next.error().describe();
        EXPECT_EQ(rows_of(file), before) << point;
        expect_copy();
        EXPECT_THAT(beside("partial"), IsEmpty()) << point;
        EXPECT_THAT(beside(".before-000" + std::to_string(GetParam() + 1)), SizeIs(1)) << point;
        begin_anew();
      });
  EXPECT_GT(kills, 40);
}

TEST_P(MigrationWalk, AFullDiskAtAnyStepLosesNothing) {
  const int full = test::fill_disk_at_every_step(
      {DATABASE_ONCE, file.string()}, {"write", "pwrite64", "ftruncate", "fallocate"},
      [&](const std::string& point, int) {
        EXPECT_EQ(rows_of(file), before) << point;
        const auto next = Database::open(file);
        ASSERT_TRUE(next) << point << ": " << next.error().describe();
        expect_copy();
        begin_anew();
      });
  EXPECT_GT(full, 10);
}

INSTANTIATE_TEST_SUITE_P(Schema, MigrationWalk, ::testing::Values(1, 2),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace qualify::journal
