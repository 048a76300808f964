#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.hpp"
#include "qualify/store/transfer.hpp"
#include "support/program.hpp"

namespace qualify::store {
namespace {

/// Every system call by which a store changes.
constexpr char kSteps[] =
    "openat,write,fsync,fchmod,rename,link,mkdir,unlink,utimensat,flock,ftruncate";
constexpr int kMostSteps = 2000;

/// Runs seal_once with SIGKILL at its n-th step, for every n, until it gets to its end; `check`
/// looks at what each leaves. Returns the number of steps.
template <class Check>
int kill_at_every_step(const std::vector<std::string>& arguments, const Check& check) {
  for (int step = 1; step < kMostSteps; ++step) {
    std::vector<std::string> argv{
        "/usr/bin/strace",
        "-qq",
        "-f",
        "-o",
        "/dev/null",
        "-e",
        std::string("trace=") + kSteps,
        "-e",
        std::string("inject=") + kSteps + ":signal=SIGKILL:when=" + std::to_string(step),
        SEAL_ONCE};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    const auto ran = test::run_program(argv);
    const bool ended = ran.exit_code == 0;
    if (!ended && ran.exit_code != 137) {
      ADD_FAILURE() << "step " << step << ": " << ran.exit_code << " " << ran.output;
      return step;
    }
    check(step);
    if (ended || ::testing::Test::HasFailure()) return step;
  }
  ADD_FAILURE() << "it never ended";
  return kMostSteps;
}

TEST(Crash, ASealKilledAtAnyStepLeavesAStoreThatWorks) {
  const Fixture f;
  const auto expected = f.seal("reference").value().digest;
  const int steps = kill_at_every_step(
      {(f.folder / "bundle.yaml").string(), (f.folder / "s").string()}, [&](int step) {
        // Whatever is listed is whole.
        auto store = BlobStore::open(f.folder / "s");
        ASSERT_TRUE(store) << "step " << step << ": " << store.error().describe();
        const auto bundles = list(*store);
        ASSERT_TRUE(bundles) << "step " << step << ": " << bundles.error().describe();
        for (const Bundle& bundle : *bundles) {
          EXPECT_TRUE(verify(*store, bundle.digest).empty()) << "step " << step;
        }
        // The next command works.
        const auto again = f.seal("s");
        ASSERT_TRUE(again) << "step " << step << ": " << again.error().describe();
        EXPECT_EQ(again->digest, expected);
        EXPECT_TRUE(verify(*store, expected).empty());
        fs::remove_all(f.folder / "s");
      });
  EXPECT_GT(steps, 50);
}

TEST(Crash, AnImportKilledAtAnyStepShowsAllOrNothing) {
  const Fixture f;
  const auto expected = f.seal("reference").value().digest;
  ASSERT_TRUE(export_bundle(f.store("reference"), expected, f.folder / "b.tar"));
  const int steps = kill_at_every_step(
      {"--import", (f.folder / "b.tar").string(), (f.folder / "s").string()}, [&](int step) {
        auto store = BlobStore::open(f.folder / "s");
        ASSERT_TRUE(store) << "step " << step << ": " << store.error().describe();
        const auto bundles = list(*store);
        ASSERT_TRUE(bundles) << "step " << step;
        if (!bundles->empty()) {
          EXPECT_TRUE(verify(*store, expected).empty()) << step;
        }
        const auto again = import_bundles(*store, f.folder / "b.tar");
        ASSERT_TRUE(again) << "step " << step << ": " << again.error().describe();
        EXPECT_TRUE(verify(*store, expected).empty()) << step;
        fs::remove_all(f.folder / "s");
      });
  EXPECT_GT(steps, 50);
}

}  // namespace
}  // namespace qualify::store
