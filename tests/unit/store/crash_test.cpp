#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.hpp"
#include "qualify/store/transfer.hpp"
#include "support/program.hpp"

namespace qualify::store {
namespace {

/// Every system call by which a store changes, and those by which it gets to its files.
constexpr const char* kCalls[] = {"openat", "write",     "fsync",     "fchmod", "rename",
                                  "link",   "mkdir",     "unlink",    "flock",  "utimensat",
                                  "ioctl",  "ftruncate", "fallocate", "chmod",  "sync_file_range"};

/// Runs seal_once with SIGKILL at the n-th of each of these calls, for every n, until it gets to
/// its end (strace counts each call by itself); `check` looks at what each leaves. Returns the
/// number of kills.
template <class Check>
int kill_at_every_step(const std::vector<std::string>& arguments, const Check& check) {
  int kills = 0;
  for (const std::string call : kCalls) {
    for (int step = 1;; ++step) {
      std::vector<std::string> argv{
          "/usr/bin/strace",
          "-qq",
          "-f",
          "-o",
          "/dev/null",
          "-e",
          "trace=" + call,
          "-e",
          "inject=" + call + ":signal=SIGKILL:when=" + std::to_string(step),
          SEAL_ONCE};
      argv.insert(argv.end(), arguments.begin(), arguments.end());
      const auto ran = test::run_program(argv);
      const std::string what = call + " " + std::to_string(step);
      const bool ended = ran.exit_code == 0;
      if (!ended && ran.exit_code != 137) ADD_FAILURE() << what << ": " << ran.output;
      check(what);
      if (::testing::Test::HasFailure()) return kills;
      if (ended) break;
      ++kills;
    }
  }
  return kills;
}

TEST(Crash, ASealKilledAtAnyStepLeavesAStoreThatWorks) {
  const Fixture f;
  const auto expected = f.seal("reference").value().digest;
  const int steps = kill_at_every_step(
      {"--one-thread", (f.folder / "bundle.yaml").string(), (f.folder / "s").string()},
      [&](const std::string& step) {
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
  const Fixture f;
  const auto expected = f.seal("reference").value().digest;
  ASSERT_TRUE(export_bundle(f.store("reference"), expected, f.folder / "b.tar"));
  const int steps =
      kill_at_every_step({"--import", (f.folder / "b.tar").string(), (f.folder / "s").string()},
                         [&](const std::string& step) {
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
