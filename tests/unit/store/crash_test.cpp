#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.hpp"
#include "qualify/store/transfer.hpp"
#include "support/system_calls.hpp"

namespace qualify::store {
namespace {

std::vector<std::string> once(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), SEAL_ONCE);
  return arguments;
}

TEST(Crash, ASealKilledAtAnyStepLeavesAStoreThatWorks) {
  const LargeFixture f;
  const auto expected = f.seal("reference").value().digest;
  const int steps = test::kill_at_every_step(
      once({"--one-thread", (f.folder / "bundle.yaml").string(), (f.folder / "s").string()}),
      test::file_calls(), [&](const std::string& step) {
        // Whatever is listed is whole.
        auto store = BlobStore::open(f.folder / "s");
        ASSERT_TRUE(store) << step << ": " << store.error().describe();
        const auto bundles = list(*store);
        ASSERT_TRUE(bundles) << step << ": " << bundles.error().describe();
        for (const Bundle& bundle : *bundles) {
          EXPECT_TRUE(verify(*store, bundle.digest).empty()) << step;
        }
        // The next command works.
        const auto again = f.seal("s");
        ASSERT_TRUE(again) << step << ": " << again.error().describe();
        EXPECT_EQ(again->digest, expected);
        EXPECT_TRUE(verify(*store, expected).empty());
        fs::remove_all(f.folder / "s");
      });
  EXPECT_GT(steps, 80);
}

TEST(Crash, AnImportKilledAtAnyStepShowsAllOrNothing) {
  const LargeFixture f;
  const auto expected = f.seal("reference").value().digest;
  ASSERT_TRUE(export_bundle(f.store("reference"), expected, f.folder / "b.tar"));
  const int steps = test::kill_at_every_step(
      once({"--import", (f.folder / "b.tar").string(), (f.folder / "s").string()}),
      test::file_calls(), [&](const std::string& step) {
        auto store = BlobStore::open(f.folder / "s");
        ASSERT_TRUE(store) << step << ": " << store.error().describe();
        const auto bundles = list(*store);
        ASSERT_TRUE(bundles) << step;
        if (!bundles->empty()) {
          EXPECT_TRUE(verify(*store, expected).empty()) << step;
        }
        const auto again = import_bundles(*store, f.folder / "b.tar");
        ASSERT_TRUE(again) << step << ": " << again.error().describe();
        EXPECT_TRUE(verify(*store, expected).empty()) << step;
        fs::remove_all(f.folder / "s");
      });
  EXPECT_GT(steps, 80);
}

}  // namespace
}  // namespace qualify::store
