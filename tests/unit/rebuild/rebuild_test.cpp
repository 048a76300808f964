#include <gmock/gmock.h>

#include "finished_state.hpp"

namespace qualify::rebuild {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(FinishedState, ASoundDatabaseIsLeftAlone) {
  const auto done = rebuild_now();
  ASSERT_TRUE(done) << done.error().describe();
  EXPECT_FALSE(done->needed) << done->why.front();
  EXPECT_EQ(shown(), before);
}

TEST_F(FinishedState, AMissingDatabaseComesBackWhole) {
  lose_database();
  const auto opened = run::open_state(paths.folder);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::integrity);
  EXPECT_THAT(opened.error().hint, HasSubstr("qualify doctor --rebuild"));
  EXPECT_EQ(run::open_state_read_only(paths.folder).error().code, Errc::integrity);
  EXPECT_EQ(run::init_state(paths.folder).error().code, Errc::integrity)
      << "numbers would begin anew over folders that are there";
  const auto done = rebuild_now();
  ASSERT_TRUE(done) << done.error().describe();
  EXPECT_THAT(done->lost, IsEmpty());
  EXPECT_THAT(done->faults, IsEmpty());
  EXPECT_EQ(shown(), before);
  expect_goes_on();
}

TEST_F(FinishedState, AnEmptiedOrShortenedFileIsMadeAnewAndKept) {
  settle();
  const auto size = fs::file_size(paths.database());
  for (const std::uintmax_t left :
       {std::uintmax_t{0}, std::uintmax_t{100}, size / 3, size - 4096}) {
    fs::resize_file(paths.database(), left);
    const auto done = rebuild_now();
    ASSERT_TRUE(done) << left << ": " << done.error().describe();
    ASSERT_TRUE(done->needed) << left;
    EXPECT_THAT(done->lost, IsEmpty()) << left;
    EXPECT_THAT(done->kept, Contains(::testing::Truly(
                                [&](const fs::path& file) { return fs::file_size(file) == left; })))
        << left;
    EXPECT_EQ(shown(), before) << left;
  }
  expect_goes_on();
}

TEST_F(FinishedState, AFlippedBitInARowThatSqliteTakesForWholeIsFound) {
  settle();
  const std::string content = read_file(paths.database()).value();
  const auto at = content.find("\"nonce\":\"q");
  ASSERT_NE(at, std::string::npos);
  flip(paths.database(), at + 12, 0x01);
  EXPECT_THAT(inspect(paths.folder), Not(IsEmpty()));
  const auto done = rebuild_now();
  ASSERT_TRUE(done) << done.error().describe();
  EXPECT_TRUE(done->needed);
  EXPECT_THAT(done->lost, IsEmpty());
  EXPECT_EQ(shown(), before);
}

TEST_F(FinishedState, RowsThatTheLastWriterCouldNotCopyComeFromTheDamagedFile) {
  {
    auto without = journal::Database::open(paths.database()).value();
    ASSERT_TRUE(journal::Journal(without).append(clock.now(), {}, {}, 0, "note", {{"n", 1}}));
  }
  before = shown();
  settle();
  // A page of an index: rows are whole, the file is not.
  const std::string page = test::run_program({SQLITE3_PROGRAM, paths.database().string()},
                                             "SELECT rootpage FROM sqlite_schema WHERE name = "
                                             "'event_by_qualification';")
                               .output;
  flip(paths.database(), (std::stoul(page) - 1) * 4096 + 3, 0xff);
  const auto done = rebuild_now();
  ASSERT_TRUE(done) << done.error().describe();
  EXPECT_THAT(done->salvaged, Contains(HasSubstr("(note)")));
  EXPECT_EQ(shown(), before);
}

TEST_F(FinishedState, ADamagedTranscriptIsWrittenAnewFromTheDatabase) {
  const std::string whole = read_file(paths.transcript()).value();
  flip(paths.transcript(), whole.size() / 2);
  EXPECT_THAT(inspect(paths.folder), Not(IsEmpty()));
  const auto done = rebuild_now();
  ASSERT_TRUE(done) << done.error().describe();
  EXPECT_THAT(done->lost, IsEmpty());
  EXPECT_THAT(done->faults, IsEmpty());
  EXPECT_EQ(shown(), before);
  EXPECT_TRUE(journal::read_transcript(paths.transcript())->faults.empty());
}

TEST_F(FinishedState, WhereBothAreDamagedEachGivesWhatTheOtherLacks) {
  settle();
  // A line of the transcript, and a page of the database that has other rows: the last one in use.
  std::string text = read_file(paths.transcript()).value();
  const auto line = text.find("attempt.submitted");
  ASSERT_NE(line, std::string::npos);
  flip(paths.transcript(), line);
  const std::string page = test::run_program({SQLITE3_PROGRAM, paths.database().string()},
                                             "SELECT rootpage FROM sqlite_schema WHERE name = "
                                             "'tree_node';")
                               .output;
  flip(paths.database(), (std::stoul(page) - 1) * 4096, 0xff);
  const auto done = rebuild_now();
  ASSERT_TRUE(done) << done.error().describe();
  EXPECT_THAT(done->lost, IsEmpty());
  EXPECT_THAT(done->salvaged, Contains(HasSubstr("proven by the transcript's digest")));
  EXPECT_EQ(shown(), before);
  expect_goes_on();
}

TEST_F(FinishedState, AnIntentThatIsNowhereElseComesFromTheAttemptsFolder) {
  lose_database();
  const std::string text = read_file(paths.transcript()).value();
  auto at = text.find("attempt.intent", text.find("second-1"));
  ASSERT_NE(at, std::string::npos);
  flip(paths.transcript(), at);
  const auto done = rebuild_now();
  ASSERT_TRUE(done) << done.error().describe();
  EXPECT_THAT(done->remade, Contains(HasSubstr("the intent of second-1, run a, attempt 1")));
  EXPECT_THAT(done->faults, IsEmpty());
  expect_goes_on();
}

TEST_F(FinishedState, WithoutDatabaseAndTranscriptWhatIsLostIsNamedAndNoFolderIsUsedAgain) {
  lose_database();
  fs::remove(paths.transcript());
  const auto done = rebuild_now();
  ASSERT_TRUE(done) << done.error().describe();
  EXPECT_THAT(done->lost, Contains(HasSubstr("qualification first-1: its plan")));
  EXPECT_THAT(done->lost, Contains(HasSubstr("qualification second-1: its plan")));
  EXPECT_THAT(done->faults, IsEmpty());
  auto state = run::open_state(paths.folder).value();
  EXPECT_EQ(qualify(state, "second").error().code, Errc::refused)
      << "its old job is on the node yet";
  clock.advance(std::chrono::hours(1));
  const auto outcome = qualify(state, "second");
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->state.name, "second-2") << "first asked for while the old job was live";
}

TEST_F(FinishedState, ARecordThatIsLostEndsTheLogAndItsCheckpointSaysSo) {
  lose_database();
  const std::string text = read_file(paths.transcript()).value();
  const auto line = text.find("\"table\":\"record\"");
  ASSERT_NE(line, std::string::npos);
  flip(paths.transcript(), line - 40);
  const auto done = rebuild_now();
  ASSERT_TRUE(done) << done.error().describe();
  EXPECT_THAT(done->lost, Contains(HasSubstr("record")));
  ASSERT_THAT(done->faults, Not(IsEmpty()));
  EXPECT_THAT(done->faults.front().describe(), HasSubstr("the log was cut"));
}

TEST_F(FinishedState, AStateInUseIsNotRebuilt) {
  lose_database();
  const auto lock = FileLock::acquire(paths.lock(), false);
  const auto done = rebuild_now();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::busy);
}

TEST_F(FinishedState, WhoeverHadItOpenBeforeItWasRebuiltIsToldAndLosesNothing) {
  auto early = run::open_state(paths.folder);  // before the other took the lock
  ASSERT_TRUE(early);
  fs::rename(paths.database(), folder / "lost.db");
  const auto rebuilt = rebuild_now();
  ASSERT_TRUE(rebuilt) << rebuilt.error().describe();
  ASSERT_TRUE(rebuilt->needed);
  const auto refused = qualify(*early, "third");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::busy);
  EXPECT_NE(refused.error().describe().find("rebuilt"), std::string::npos);
  EXPECT_EQ(cluster->submissions(), 3U) << "a job that no journal knows";
  expect_goes_on();
}

TEST_F(FinishedState, AnArmingThatDoesNotMakeSenseIsFound) {
  {
    auto state = run::open_state(paths.folder).value();
    ASSERT_TRUE(journal::Journal(state.database)
                    .append(clock.now(), {}, {}, 0, "gate.armed", {{"gate", "first"}}));
  }
  const auto faults = inspect(paths.folder);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_NE(faults[0].message.find("arming"), std::string::npos) << faults[0].message;
}

TEST_F(FinishedState, ANewerDatabaseIsNotTakenForADamagedOne) {
  (void)test::run_program({SQLITE3_PROGRAM, paths.database().string()},
                          "PRAGMA user_version = 99;");
  const auto done = rebuild_now();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::unsupported);
}

}  // namespace
}  // namespace qualify::rebuild
