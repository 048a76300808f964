#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fixture.hpp"

namespace qualify::store {
namespace {

/// Every bit of every file of a stored bundle, one at a time.
TEST(Verify, FindsEverySingleBitFlip) {
  Fixture f;
  // Small, so that all of it can be walked: one file of code, one of data.
  f.repo.git({"rm", "-q", "-r", "lib"});
  f.repo.commit();
  const auto sealed = f.seal().value();
  const auto store = f.store();
  ASSERT_TRUE(verify(store, sealed.digest).empty());
  std::size_t flips = 0;
  for (const auto& entry : fs::recursive_directory_iterator(store.root())) {
    // Locks are empty, and the seal cache is no part of any bundle: verification never looks at it.
    if (!entry.is_regular_file() || entry.path().extension() == ".lock") continue;
    if (entry.path().filename() == "seal-cache") continue;
    fs::permissions(entry.path(), fs::perms::owner_all);
    const std::string bytes = read_file(entry.path()).value();
    const Fd file(::open(entry.path().c_str(), O_RDWR));
    ASSERT_TRUE(file.valid());
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      const auto at = static_cast<off_t>(bit / 8);
      const char flipped = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
      ASSERT_EQ(::pwrite(file.get(), &flipped, 1, at), 1);
      ASSERT_FALSE(verify(store, sealed.digest).empty())
          << entry.path() << " byte " << at << " bit " << bit % 8;
      ASSERT_EQ(::pwrite(file.get(), &bytes[bit / 8], 1, at), 1);
      ++flips;
    }
  }
  EXPECT_TRUE(verify(store, sealed.digest).empty());
  EXPECT_GT(flips, 30'000U);
}

}  // namespace
}  // namespace qualify::store
