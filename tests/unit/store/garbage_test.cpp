#include "qualify/store/garbage.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.hpp"
#include "support/fake_clock.hpp"

namespace qualify::store {
namespace {

/// A clock that is a day and an hour ahead of the files.
test::FakeClock later() {
  return test::FakeClock(SystemClock().now() + std::chrono::hours(25));
}

TEST(Garbage, OnlyWhatNothingNamesGoes) {
  const Fixture f;
  const auto sealed = f.seal().value();
  auto store = f.store();
  const auto orphan = store.add_bytes("orphan", "text/plain").value();
  const auto kept = store.add_bytes("kept", "text/plain").value();
  f.write("store/blobs/sha256/.tmp-abc", "half");
  const auto clock = later();
  CollectOptions options;
  options.keep = {kept.digest};
  const auto dry = collect_garbage(store, options, clock).value();
  EXPECT_EQ(dry.files.size(), 2U);
  EXPECT_EQ(dry.bytes, 10U);
  EXPECT_TRUE(store.has(orphan.digest));
  options.remove = true;
  ASSERT_EQ(collect_garbage(store, options, clock)->files.size(), 2U);
  EXPECT_FALSE(store.has(orphan.digest));
  EXPECT_TRUE(store.has(kept.digest));
  EXPECT_TRUE(verify(store, sealed.digest).empty());
}

TEST(Garbage, WhatAKilledWriteLeftBesideTheIndexGoesToo) {
  const Fixture f;
  const auto sealed = f.seal().value();
  auto store = f.store();
  for (const char* name : {".index.json.a1B2c3", ".seal-cache.a1B2c3", ".keep"}) {
    f.write(std::string("store/") + name, "half");
  }
  ASSERT_TRUE(collect_garbage(store, {.remove = true}, later()));
  EXPECT_FALSE(fs::exists(f.folder / "store/.index.json.a1B2c3"));
  EXPECT_FALSE(fs::exists(f.folder / "store/.seal-cache.a1B2c3"));
  EXPECT_TRUE(fs::exists(f.folder / "store/.keep"));  // not ours
  EXPECT_TRUE(fs::exists(f.folder / "store/seal-cache"));
  EXPECT_TRUE(verify(store, sealed.digest).empty());
}

TEST(Garbage, NothingYoungerThanTheGraceGoes) {
  const Fixture f;
  auto store = f.store();
  ASSERT_TRUE(store.add_bytes("fresh", "text/plain"));
  EXPECT_TRUE(collect_garbage(store, {.remove = true}, SystemClock())->files.empty());
}

TEST(Garbage, ADroppedBundleGoesUnlessSomethingNamesIt) {
  const Fixture f;
  const auto sealed = f.seal().value();
  auto store = f.store();
  const auto clock = later();
  CollectOptions options;
  options.drop = {sealed.digest};
  options.remove = true;
  options.keep = {sealed.digest};
  EXPECT_EQ(collect_garbage(store, options, clock).error().code, Errc::refused);
  EXPECT_TRUE(verify(store, sealed.digest).empty());
  options.keep.clear();
  ASSERT_TRUE(collect_garbage(store, options, clock));
  EXPECT_TRUE(list(store)->empty());
  EXPECT_TRUE(fs::is_empty(store.root() / "blobs/sha256"));
}

TEST(Garbage, ASealThatIsGoingOnIsNotDisturbed) {
  const Fixture f;
  auto store = f.store();
  const auto sealing = FileLock::acquire_shared(store.root() / "collect.lock");
  EXPECT_EQ(collect_garbage(store, {.remove = true}, later()).error().code, Errc::busy);
  EXPECT_TRUE(collect_garbage(store, {}, later()));
}

}  // namespace
}  // namespace qualify::store
