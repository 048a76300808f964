#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "fixture.hpp"
#include "qualify/base/files.hpp"
#include "qualify/store/garbage.hpp"
#include "qualify/store/transfer.hpp"
#include "support/fake_clock.hpp"

/// What a store does once something in it was lost or changed.
namespace qualify::store {
namespace {

using ::testing::HasSubstr;

/// Two seals of one name.
struct Twice : Fixture {
  Bundle older = seal().value();
  Bundle newer = [this] {
    replace("seeds: [7]", "seeds: [8]");
    return seal().value();
  }();
  [[nodiscard]] fs::path manifest() const { return store().path_of(newer.digest); }
};

TEST(Damage, OfTheNewestBundleOfANameIsSaidAndNoOlderOneStandsIn) {
  const Twice f;
  ASSERT_EQ(resolve(f.store(), "demo").value(), f.newer.digest);
  const std::string bytes = read_file(f.manifest()).value();
  fs::remove(f.manifest());
  EXPECT_EQ(resolve(f.store(), "demo").error().code, Errc::integrity) << "a blob that is gone";
  f.write("store/blobs/sha256/" + f.newer.digest.hex(), bytes + " ");
  const auto damaged = resolve(f.store(), "demo");
  EXPECT_EQ(damaged.error().code, Errc::integrity);
  EXPECT_THAT(damaged.error().describe(), HasSubstr(f.newer.digest.hex()));
  EXPECT_EQ(resolve(f.store(), f.older.digest.hex().substr(0, 12)).value(), f.older.digest);
  EXPECT_EQ(resolve(f.store(), "demo-" + f.older.digest.brief()).value(), f.older.digest);
}

TEST(Damage, OfAnotherBundleIsNoneOfThisName) {
  Fixture f;
  const auto first = f.seal().value();
  f.replace("name: demo", "name: other");
  const auto second = f.seal().value();
  fs::remove(f.store().path_of(second.digest));
  EXPECT_EQ(resolve(f.store(), "demo").value(), first.digest);
  EXPECT_EQ(resolve(f.store(), "other").error().code, Errc::integrity);
}

TEST(Damage, AnIndexThatIsGoneIsNotMadeAnew) {
  const Fixture f;
  (void)f.seal().value();
  fs::remove(f.folder / "store/index.json");
  auto store = f.store();
  const test::FakeClock clock;
  CollectOptions options;
  options.remove = true;
  options.grace = Duration::zero();
  const auto collected = collect_garbage(store, options, clock);
  EXPECT_EQ(collected.error().code, Errc::integrity);
  EXPECT_THAT(collected.error().describe(), HasSubstr("lost its index"));
  EXPECT_EQ(f.seal().error().code, Errc::integrity);
  EXPECT_FALSE(fs::exists(f.folder / "store/index.json"));
}

TEST(Damage, WhatARunOrCertificateNamesIsKeptWholeWithoutAnIndexEntryToo) {
  const Fixture f;
  const auto sealed = f.seal().value();
  auto store = f.store();
  const std::string one = read_file(store.root() / "index.json").value();
  (void)BlobStore::open(f.folder / "empty").value();
  const std::string none = read_file(f.folder / "empty/index.json").value();
  ASSERT_TRUE(write_file_atomic(store.root() / "index.json", none));
  const test::FakeClock clock;
  CollectOptions options;
  options.remove = true;
  options.grace = -std::chrono::hours(24 * 36500);
  options.keep = {sealed.digest, sha256("of a bundle that was never here")};
  ASSERT_TRUE(collect_garbage(store, options, clock));
  ASSERT_TRUE(write_file_atomic(store.root() / "index.json", one));
  EXPECT_TRUE(verify(store, sealed.digest).empty());
}

TEST(Damage, OfABlobIsPutRightByAnImport) {
  const Fixture f;
  const auto sealed = f.seal().value();
  auto store = f.store();
  ASSERT_TRUE(export_bundle(store, sealed.digest, f.folder / "b.tar"));
  const fs::path blob = store.path_of(sealed.code[0].archive.digest);
  std::string bytes = read_file(blob).value();
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(write_file_atomic(blob, bytes));
  ASSERT_FALSE(verify(store, sealed.digest).empty());
  const auto imported = import_bundles(store, f.folder / "b.tar");
  ASSERT_TRUE(imported) << imported.error().describe();
  EXPECT_TRUE(verify(store, sealed.digest).empty());
}

TEST(Damage, ABlobLongerThanItsManifestSaysIsNotExported) {
  const LargeFixture f;
  const auto sealed = f.seal().value();
  const auto store = f.store();
  const auto sink_that_throws = [](std::span<const std::byte>) -> Result<void> {
    throw std::logic_error("a sink may throw");
  };
  EXPECT_THROW((void)store.stream(sealed.container.content.digest, sink_that_throws),
               std::logic_error)
      << "and nothing waits for ever";
}

TEST(Import, ReadsABundleOnceHoweverOftenTheIndexNamesIt) {
  const Fixture f;
  const auto sealed = f.seal().value();
  ASSERT_TRUE(export_bundle(f.store(), sealed.digest, f.folder / "b.tar"));
  test::run({"tar", "-C", f.folder.path().string(), "-xf", (f.folder / "b.tar").string(),
             "index.json", "oci-layout", "blobs"});
  std::string index = read_file(f.folder / "index.json").value();
  const auto begin = index.find("[{") + 1;
  const auto end = index.find("}]", begin) + 1;
  const std::string entry = index.substr(begin, end - begin);
  std::string many = entry;
  for (int i = 0; i < 2000; ++i) many += "," + entry;
  fs::remove(f.folder / "index.json");
  f.write("index.json", index.replace(begin, end - begin, many));
  test::run({"tar", "-C", f.folder.path().string(), "-cf", (f.folder / "many.tar").string(),
             "oci-layout", "index.json", "blobs"});
  auto other = f.store("other");
  const auto imported = import_bundles(other, f.folder / "many.tar");
  ASSERT_TRUE(imported) << imported.error().describe();
  EXPECT_THAT(*imported, ::testing::ElementsAre(sealed.digest));
}

}  // namespace
}  // namespace qualify::store
