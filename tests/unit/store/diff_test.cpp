#include "qualify/store/diff.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.hpp"

namespace qualify::store {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

std::vector<std::string> lines_of(const std::vector<Difference>& differences) {
  std::vector<std::string> lines;
  for (const Difference& one : differences) {
    lines.push_back(one.input + ": " + one.what);
    for (const std::string& detail : one.details) lines.push_back("  " + detail);
  }
  return lines;
}

TEST(Diff, SaysWhichInputsChangedAndHow) {
  Fixture f;
  const auto a = f.seal().value();
  f.repo.write("lib/y.py", "y = 1\n");
  f.repo.write("train.py", "print('bye')\n");
  f.repo.git({"rm", "-q", "lib/x.py"});
  f.repo.commit();
  f.write("train.yaml", "layers: 4\nhidden: 8\n");
  f.write("corpus/sub/b.bin", "cccc");
  f.replace("{NCCL_ALGO: Ring}", "{NCCL_ALGO: Tree, NEW: '1'}");
  f.replace("[--deterministic-mode]", "[--deterministic-mode, --extra]");
  f.replace("seeds: [7]", "seeds: [8]");
  f.replace("  nondeterministic:\n", "");
  const auto b = f.seal().value();
  const auto lines = lines_of(diff(f.store(), a, b).value());
  const std::string commits = "code trainer: commit " + a.code[0].commit.substr(0, 12) + " -> " +
                              b.code[0].commit.substr(0, 12);
  for (const std::string& expected :
       {commits, std::string("  removed lib/x.py"), std::string("  added lib/y.py"),
        std::string("  changed train.py"), std::string("config train: changed, first in line 2"),
        std::string("environment: NCCL_ALGO: Ring -> Tree"),
        std::string("environment: NEW added: 1"),
        std::string("arm deterministic arguments: changed"), std::string("  added --extra"),
        std::string("arm nondeterministic: removed"), std::string("  changed sub/b.bin"),
        std::string("seeds: changed")}) {
    EXPECT_THAT(lines, Contains(expected));
  }
}

TEST(Diff, OfABundleWithItselfIsEmpty) {
  const Fixture f;
  const auto a = f.seal().value();
  EXPECT_TRUE(diff(f.store(), a, a)->empty());
}

TEST(Diff, AModeAloneIsNamed) {
  const Fixture f;
  const auto a = f.seal().value();
  fs::permissions(f.repo.path() / "train.py", fs::perms::owner_all);
  f.repo.commit();
  const auto lines = lines_of(diff(f.store(), a, f.seal().value()).value());
  EXPECT_THAT(lines, Contains("  changed mode of train.py"));
}

}  // namespace
}  // namespace qualify::store
