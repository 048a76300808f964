#include "qualify/store/blob_store.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "qualify/base/files.hpp"
#include "support/temp_folder.hpp"

namespace qualify::store {
namespace {

using test::TempFolder;

TEST(BlobStore, AddingTwiceKeepsOneReadOnlyBlob) {
  const TempFolder folder;
  auto store = BlobStore::open(folder / "s").value();
  const auto first = store.add_bytes("hello", "text/plain").value();
  EXPECT_EQ(first.digest, sha256("hello"));
  EXPECT_EQ(first.size, 5U);
  EXPECT_EQ(store.add_bytes("hello", "text/plain").value(), first);
  struct stat status {};
  ASSERT_EQ(::stat(store.path_of(first.digest).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0444U);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "s/blobs/sha256"), {}), 1);
}

TEST(BlobStore, AnExistingBlobIsNotTrustedAndIsReplacedByBytesThatAreRight) {
  const TempFolder folder;
  auto store = BlobStore::open(folder / "s").value();
  const auto blob = store.add_bytes("hello", "text/plain").value();
  fs::permissions(store.path_of(blob.digest), fs::perms::owner_all);
  std::ofstream(store.path_of(blob.digest)) << "hellO";
  EXPECT_EQ(store.verify(blob.digest).error().code, Errc::integrity);
  EXPECT_EQ(store.read(blob.digest).error().code, Errc::integrity);
  EXPECT_EQ(store.add_bytes("hello", "text/plain").value(), blob);
  EXPECT_EQ(store.read(blob.digest).value(), "hello");
}

TEST(BlobStore, ALinkInABlobsPlaceIsAFault) {
  const TempFolder folder;
  auto store = BlobStore::open(folder / "s").value();
  const auto blob = store.add_bytes("hello", "text/plain").value();
  fs::rename(store.path_of(blob.digest), folder / "elsewhere");
  fs::create_symlink(folder / "elsewhere", store.path_of(blob.digest));
  EXPECT_EQ(store.verify(blob.digest).error().code, Errc::integrity);
}

TEST(BlobStore, AnAbandonedWriteLeavesNothing) {
  const TempFolder folder;
  auto store = BlobStore::open(folder / "s").value();
  {
    auto writer = store.begin().value();
    ASSERT_TRUE(writer.write(std::as_bytes(std::span("half"))));
  }
  EXPECT_TRUE(fs::is_empty(folder / "s/blobs/sha256"));
}

TEST(BlobStore, OnlyAnOciLayoutIsOpened) {
  const TempFolder folder;
  EXPECT_EQ(BlobStore::open_read_only(folder / "none").error().code, Errc::not_found);
  fs::create_directories(folder / "s/blobs/sha256");
  ASSERT_TRUE(write_file_atomic(folder / "s/oci-layout", R"({"imageLayoutVersion":"2.0.0"})"));
  EXPECT_EQ(BlobStore::open_read_only(folder / "s").error().code, Errc::integrity);
}

}  // namespace
}  // namespace qualify::store
