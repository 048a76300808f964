#include "qualify/journal/database.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "qualify/base/files.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"

namespace qualify::journal {
namespace {

using test::TempFolder;

OpenOptions on(const char* name, bool local) {
  OpenOptions options;
  options.file_system_of = [=](const fs::path&) -> Result<FileSystem> {
    return FileSystem{name, local};
  };
  return options;
}

std::string sqlite3_tool(const fs::path& file, const std::string& sql) {
  return test::run_program({SQLITE3_PROGRAM, file.string()}, sql).output;
}

std::string one(const Database& database, const char* sql) {
  auto statement = database.prepare(sql);
  if (!statement) return statement.error().describe();
  auto row = statement->step();
  if (!row) return row.error().describe();
  return *row ? statement->text(0) : "(no row)";
}

/// SQL without comments and line ends: how a statement is laid out is no part of the schema.
std::string without_layout(const std::string& text) {
  std::string out;
  bool comment = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "--") == 0) comment = true;
    if (text[i] == '\n') comment = false;
    if (comment) continue;
    const char c = text[i] == '\n' ? ' ' : text[i];
    if (c == ' ' && !out.empty() && out.back() == ' ') continue;
    out += c;
  }
  return out;
}

TEST(Database, AFileThatWasReplacedSinceItWasOpenedIsNotWrittenTo) {
  const TempFolder folder;
  auto old = Database::open(folder / "it.db");
  ASSERT_TRUE(old);
  ASSERT_TRUE(Database::open(folder / "new.db"));
  fs::rename(folder / "new.db", folder / "it.db");
  bool worked = false;
  const auto refused = old->transaction([&]() -> Result<void> {
    worked = true;
    return {};
  });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::busy);
  EXPECT_NE(refused.error().describe().find("give the command again"), std::string::npos);
  EXPECT_FALSE(worked);
  auto again = Database::open(folder / "it.db");
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->transaction([]() -> Result<void> { return {}; }));
}

TEST(Database, MigrationsLeadToTheWrittenSchema) {
  const TempFolder folder;
  const auto opened = Database::open(folder / "migrated.db");
  ASSERT_TRUE(opened) << opened.error().describe();
  const auto written = read_file(SCHEMA_FILE).value();
  EXPECT_EQ(sqlite3_tool(folder / "written.db", without_layout(written)), "");
  // The text of a statement keeps its comments in the schema table: compare without them, object by
  // object.
  const char* objects =
      "SELECT type || ' ' || name || ' ' || tbl_name FROM sqlite_schema ORDER BY type, name;"
      "PRAGMA user_version; PRAGMA application_id;";
  EXPECT_EQ(sqlite3_tool(folder / "migrated.db", objects),
            sqlite3_tool(folder / "written.db", objects));
  const auto names = Database::open(folder / "migrated.db").value();
  auto rows = names.prepare("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL").value();
  int compared = 0;
  while (rows.step().value()) {
    const std::string other =
        sqlite3_tool(folder / "written.db",
                     "SELECT sql FROM sqlite_schema WHERE name = '" + rows.text(0) + "';");
    EXPECT_EQ(without_layout(rows.text(1) + "\n"), without_layout(other)) << rows.text(0);
    ++compared;
  }
  EXPECT_GT(compared, 10);
}

TEST(Database, EveryTableIsStrict) {
  const TempFolder folder;
  const auto database = Database::open(folder / "a.db").value();
  EXPECT_EQ(one(database,
                "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND "
                "type = 'table' AND name NOT LIKE 'sqlite_%' AND strict = 0"),
            "0");
  const auto wrong =
      database.execute("INSERT INTO public_key VALUES ('a', x'00')");  // a blob where text belongs
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Errc::invalid_input);
}

TEST(Database, LogAheadOnLocalDisksOnly) {
  const TempFolder folder;
  EXPECT_EQ(Database::open(folder / "local.db", on("ext4", true))->journal_mode(), "wal");
  for (const char* name : {"nfs", "lustre", "gpfs", "0x12345678"}) {
    const auto database = Database::open(folder / "far.db", on(name, false)).value();
    EXPECT_EQ(database.journal_mode(), "delete");
    ASSERT_EQ(database.notes().size(), 1U);
    EXPECT_NE(database.notes()[0].find(name), std::string::npos);
    EXPECT_FALSE(fs::exists(folder / "far.db-shm"));
  }
}

TEST(Database, ALocalDatabaseThatMovedToANetworkDiskLeavesItsLogBehind) {
  const TempFolder folder;
  const fs::path file = folder / "a.db";
  {
    const auto database = Database::open(file, on("ext4", true)).value();
    ASSERT_TRUE(database.execute("INSERT INTO public_key VALUES ('k', 'p')"));
  }
  const auto moved = Database::open(file, on("nfs", false)).value();
  EXPECT_EQ(moved.journal_mode(), "delete");
  EXPECT_EQ(one(moved, "SELECT pem FROM public_key"), "p");
  // Not exclusive afterwards: another may read.
  EXPECT_EQ(
      one(Database::open_read_only(file, on("nfs", false)).value(), "SELECT pem FROM public_key"),
      "p");
}

TEST(Database, ThisMachinesFileSystemsAreTold) {
  const TempFolder folder;
  const auto here = file_system_of(folder.path());
  ASSERT_TRUE(here);
  EXPECT_FALSE(here->name.empty());
  const auto proc = file_system_of("/proc").value();  // neither known nor a place for a database
  EXPECT_EQ(proc.name, "0x00009fa0");
  EXPECT_FALSE(proc.local);
  EXPECT_EQ(file_system_of(folder / "no").error().code, Errc::not_found);
}

TEST(Database, NewerSchemaIsRefusedAndLeftAlone) {
  const TempFolder folder;
  const fs::path file = folder / "a.db";
  { ASSERT_TRUE(Database::open(file)); }
  sqlite3_tool(file, "PRAGMA user_version = 9999;");
  for (const auto& opened : {Database::open(file), Database::open_read_only(file)}) {
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Errc::unsupported);
    EXPECT_NE(opened.error().message.find("9999"), std::string::npos);
  }
  EXPECT_EQ(sqlite3_tool(file, "PRAGMA user_version;"), "9999\n");
}

TEST(Database, OlderSchemaIsBroughtForwardWithItsRows) {
  const TempFolder folder;
  const fs::path file = folder / "a.db";
  {
    // What the first migration alone had made.
    const auto first =
        read_file(fs::path(SCHEMA_FILE).parent_path() / "migrations" / "0001_journal.sql");
    ASSERT_EQ(sqlite3_tool(file, first.value() +
                                     "INSERT INTO qualification VALUES (1, 'g-1', 'g', 1, 'b', "
                                     "'p', 5); PRAGMA user_version = 1;"),
              "");
  }
  const auto early = Database::open_read_only(file);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Errc::unsupported);
  EXPECT_NE(early.error().hint.find("write access"), std::string::npos);
  const auto database = Database::open(file).value();
  EXPECT_EQ(one(database, "PRAGMA user_version"), std::to_string(schema_version()));
  EXPECT_EQ(one(database, "SELECT name FROM qualification"), "g-1");
}

TEST(Database, AMigrationThatFailsLeavesNothingOfItself) {
  const TempFolder folder;
  const fs::path file = folder / "a.db";
  const auto first =
      read_file(fs::path(SCHEMA_FILE).parent_path() / "migrations" / "0001_journal.sql");
  // The second migration's index name is taken: it fails half-way.
  sqlite3_tool(file, first.value() + "CREATE TABLE record_by_kind (x); PRAGMA user_version = 1;");
  const auto opened = Database::open(file);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().context.find("0002_"), std::string::npos);
  EXPECT_EQ(sqlite3_tool(file,
                         "SELECT count(*) FROM sqlite_schema WHERE name = 'public_key';"
                         "PRAGMA user_version;"),
            "0\n1\n");
}

TEST(Database, AnotherProgramsDatabaseIsNotTouched) {
  const TempFolder folder;
  const fs::path file = folder / "a.db";
  sqlite3_tool(file, "CREATE TABLE theirs (x);");
  for (const auto& opened : {Database::open(file), Database::open_read_only(file)}) {
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Errc::integrity);
  }
  EXPECT_EQ(sqlite3_tool(file, "SELECT name FROM sqlite_schema;"), "theirs\n");
}

TEST(Database, GarbageIsAnIntegrityFault) {
  const TempFolder folder;
  ASSERT_TRUE(write_file_atomic(folder / "a.db", std::string(8192, 'x')));
  EXPECT_EQ(Database::open(folder / "a.db").error().code, Errc::integrity);
  EXPECT_EQ(Database::open_read_only(folder / "a.db").error().code, Errc::integrity);
}

TEST(Database, ADamagedPageIsFoundByCheck) {
  const TempFolder folder;
  const fs::path file = folder / "a.db";
  {
    const auto database = Database::open(file, on("nfs", false)).value();
    ASSERT_TRUE(database.execute("INSERT INTO public_key VALUES ('k', 'p')"));
    EXPECT_TRUE(database.check().empty());
  }
  std::string content = read_file(file).value();
  for (std::size_t page = 4; page * 4096 + 16 < content.size(); page += 2) {
    content.replace(page * 4096, 16, std::string(16, '\x7f'));
  }
  ASSERT_TRUE(write_file_atomic(file, content));
  const auto opened = Database::open(file, on("nfs", false));
  if (opened) {
    const auto faults = opened->check();
    ASSERT_FALSE(faults.empty());
    EXPECT_EQ(faults[0].code, Errc::integrity);
  } else {
    EXPECT_EQ(opened.error().code, Errc::integrity);
  }
}

TEST(Database, ASecondWriterGetsBusyAfterItsTime) {
  const TempFolder folder;
  OpenOptions hasty;
  hasty.busy_timeout = std::chrono::milliseconds(1);
  auto first = Database::open(folder / "a.db").value();
  auto second = Database::open(folder / "a.db", hasty).value();
  const auto done = first.transaction([&]() -> Result<void> {
    const auto other = second.transaction([]() -> Result<void> { return {}; });
    EXPECT_FALSE(other);
    EXPECT_EQ(other.error().code, Errc::busy);
    return {};
  });
  EXPECT_TRUE(done);
  EXPECT_TRUE(second.transaction([]() -> Result<void> { return {}; }));
}

TEST(Database, AFailedTransactionLeavesNothing) {
  const TempFolder folder;
  auto database = Database::open(folder / "a.db").value();
  const auto done = database.transaction([&]() -> Result<void> {
    EXPECT_TRUE(database.execute("INSERT INTO public_key VALUES ('a', 'p')"));
    return fail(Errc::refused, "no");
  });
  EXPECT_EQ(done.error().code, Errc::refused);
  EXPECT_EQ(one(database, "SELECT count(*) FROM public_key"), "0");
  EXPECT_THROW((void)database.transaction([&]() -> Result<void> {
    EXPECT_TRUE(database.execute("INSERT INTO public_key VALUES ('a', 'p')"));
    throw std::runtime_error("no");
  }),
               std::runtime_error);
  EXPECT_EQ(one(database, "SELECT count(*) FROM public_key"), "0");
}

TEST(Database, APartThatFailsInsideATransactionUndoesOnlyItself) {
  const TempFolder folder;
  auto database = Database::open(folder / "a.db").value();
  const auto done = database.transaction([&]() -> Result<void> {
    EXPECT_TRUE(database.execute("INSERT INTO public_key VALUES ('outer', 'p')"));
    const auto part = database.transaction([&]() -> Result<void> {
      EXPECT_TRUE(database.execute("INSERT INTO public_key VALUES ('inner', 'p')"));
      return fail(Errc::refused, "no");
    });
    EXPECT_FALSE(part);
    return {};
  });
  EXPECT_TRUE(done);
  EXPECT_EQ(one(database, "SELECT group_concat(key_id) FROM public_key"), "outer");
}

TEST(Database, AFolderThatIsNotThereIsNamed) {
  const TempFolder folder;
  const auto opened = Database::open(folder / "no" / "a.db");
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().describe().find("/no"), std::string::npos);
  EXPECT_EQ(Database::open_read_only(folder / "b.db").error().code, Errc::not_found);
}

}  // namespace
}  // namespace qualify::journal
