#include <gtest/gtest.h>
#include <sys/stat.h>

#include "qualify/base/files.hpp"
#include "qualify/journal/database.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"

namespace qualify::journal {
namespace {

using test::TempFolder;

/// A folder that this test made, but that the child may only read: its database has one key.
class ReadOnly : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
    database_.emplace(Database::open(file()).value());
    if (database_->journal_mode() != "wal") GTEST_SKIP() << "no local file system for this test";
    ASSERT_TRUE(database_->execute("INSERT INTO public_key VALUES ('k', 'first')"));
  }
  void TearDown() override { ::chmod(folder_.path().c_str(), 0755); }

  void close_writer() { database_.reset(); }
  void shut_folder() { ASSERT_EQ(::chmod(folder_.path().c_str(), 0555), 0); }

  /// What somebody without write access reads: "mode|value|notes" or the error.
  std::string read_as_other() {
    const auto ran = test::in_child_without_rights([&]() -> std::string {
      const auto opened = Database::open_read_only(file());
      if (!opened) return std::string(name_of(opened.error().code)) + ": " + opened.error().message;
      auto select = opened->prepare("SELECT group_concat(pem) FROM public_key");
      if (!select || !select->step()) return "cannot select";
      return opened->journal_mode() + "|" + select->text(0) + "|" +
             std::to_string(opened->notes().size());
    });
    EXPECT_EQ(ran.exit_code, 0);
    return ran.output;
  }

  [[nodiscard]] fs::path file() const { return folder_ / "qualify.db"; }
  TempFolder folder_;
  std::optional<Database> database_;
};

TEST_F(ReadOnly, SeesWhatALiveWriterCommitted) {
  shut_folder();
  EXPECT_EQ(read_as_other(), "wal|first|0");
}

TEST_F(ReadOnly, FollowsTheLogThatAClosedWriterLeft) {
  close_writer();
  shut_folder();
  EXPECT_TRUE(fs::exists(file().string() + "-wal"));
  EXPECT_EQ(read_as_other(), "wal|first|0");
}

TEST_F(ReadOnly, ReadsAPrivateCopyWhereTheLogFilesAreMissingAndSaysSo) {
  close_writer();
  fs::remove(file().string() + "-wal");
  fs::remove(file().string() + "-shm");
  shut_folder();
  EXPECT_EQ(read_as_other(), "memory|first|1");
  EXPECT_FALSE(fs::exists(file().string() + "-wal"));
}

TEST_F(ReadOnly, NeverReadsPastALogThatItCannotJoin) {
  // As after a crash or a copy: the log has content, its index is gone.
  ASSERT_TRUE(database_->execute("INSERT INTO public_key VALUES ('l', 'second')"));
  const std::string log = read_file(file().string() + "-wal").value();
  const std::string content = read_file(file()).value();
  ASSERT_FALSE(log.empty());
  close_writer();
  ASSERT_TRUE(write_file_atomic(file(), content));
  ASSERT_TRUE(write_file_atomic(file().string() + "-wal", log));
  fs::remove(file().string() + "-shm");
  shut_folder();
  const std::string read = read_as_other();
  // An answer without what the log holds would be a wrong one.
  EXPECT_TRUE(read == "wal|first,second|0" || read.starts_with("io: its write-ahead log holds"))
      << read;
}

TEST_F(ReadOnly, CannotWrite) {
  const auto opened = Database::open_read_only(file()).value();
  const auto written = opened.execute("INSERT INTO public_key VALUES ('x', 'y')");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::io);
}

}  // namespace
}  // namespace qualify::journal
