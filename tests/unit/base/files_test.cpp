#include "qualify/base/files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/temp_folder.hpp"

namespace qualify {
namespace {

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(Files, AtomicWriteReplacesAndLeavesNothingBeside) {
  const test::TempFolder folder;
  ASSERT_TRUE(write_file_atomic(folder / "a", "one"));
  ASSERT_TRUE(write_file_atomic(folder / "a", "two", 0444));
  EXPECT_EQ(read_file(folder / "a").value(), "two");
  struct stat status {};
  ASSERT_EQ(::stat((folder / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0444U);
  EXPECT_EQ(entries(folder.path()), 1U);
}

TEST(Files, WriteIntoAMissingFolderNamesIt) {
  const test::TempFolder folder;
  const auto written = write_file_atomic(folder / "no" / "a", "x");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::not_found);
  EXPECT_NE(written.error().describe().find("/no"), std::string::npos);
}

TEST(Files, FullDiskIsNoSpaceAndLeavesTheOldFile) {
  // /dev/full fails every write with ENOSPC.
  const Fd full(::open("/dev/full", O_WRONLY));
  const auto written = write_all(full.get(), std::as_bytes(std::span("x")), "/dev/full");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::no_space);
}

TEST(Files, ReadRefusesMoreThanTheLimit) {
  const test::TempFolder folder;
  ASSERT_TRUE(write_file_atomic(folder / "a", std::string(100, 'x')));
  EXPECT_EQ(read_file(folder / "a", 100)->size(), 100U);
  EXPECT_EQ(read_file(folder / "a", 99).error().code, Errc::invalid_input);
  EXPECT_EQ(read_file(folder / "b").error().code, Errc::not_found);
}

TEST(Files, HashFileIsTheHashOfItsBytes) {
  const test::TempFolder folder;
  const std::string content((3U << 20U) + 7, 'q');
  ASSERT_TRUE(write_file_atomic(folder / "a", content));
  const auto hashed = hash_file(folder / "a").value();
  EXPECT_EQ(hashed.digest, sha256(content));
  EXPECT_EQ(hashed.size, content.size());
}

TEST(Files, ASecondLockIsBusyUntilTheFirstGoes) {
  const test::TempFolder folder;
  {
    const auto first = FileLock::acquire(folder / "lock", false);
    ASSERT_TRUE(first);
    EXPECT_EQ(FileLock::acquire(folder / "lock", false).error().code, Errc::busy);
  }
  EXPECT_TRUE(FileLock::acquire(folder / "lock", false));
}

TEST(Files, OnlyALockThatIsHeldIsSaidToBeHeld) {
  const test::TempFolder folder;
  const Error held{Errc::busy, "somebody is at work", "here", "wait", {}};
  const auto first = FileLock::acquire(folder / "lock", false);
  const auto second = FileLock::acquire_or(folder / "lock", held);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, "somebody is at work");
  const auto nowhere = FileLock::acquire_or(folder / "missing" / "lock", held);
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().code, Errc::busy);
  EXPECT_EQ(nowhere.error().context, folder / "missing" / "lock");
}

}  // namespace
}  // namespace qualify
