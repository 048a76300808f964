#include <gtest/gtest.h>
#include <unistd.h>

#include "fixture.hpp"
#include "support/program.hpp"

namespace qualify::store {
namespace {

/// Seals the fixture's spec in another process under `wrapper`; the digest it prints.
std::string sealed_under(const Fixture& f, std::vector<std::string> wrapper,
                         const std::string& name) {
  wrapper.insert(wrapper.end(),
                 {SEAL_ONCE, (f.folder / "bundle.yaml").string(), (f.folder / name).string()});
  const auto ran = test::run_program(wrapper);
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  return ran.output.substr(0, ran.output.find('\n'));
}

TEST(SameEverywhere, UmaskLocaleTimeZoneAndGitSettingsDoNotMatter) {
  const Fixture f;
  f.repo.write("text.txt", "a\nb\n");
  f.repo.write(".gitattributes", "*.txt text=auto\n");
  f.repo.commit();
  const std::string here = f.seal()->digest.str();
  f.write("home/.gitconfig", "[core]\n autocrlf = true\n quotepath = false\n");
  const std::string shell = "umask 077; exec \"$@\"";
  EXPECT_EQ(sealed_under(f, {"/bin/sh", "-c", shell, "sh"}, "s1"), here);
  EXPECT_EQ(sealed_under(f, {"/bin/sh", "-c", "umask 0; exec \"$@\"", "sh"}, "s2"), here);
  EXPECT_EQ(sealed_under(f, {"/usr/bin/env", "LC_ALL=C.UTF-8", "TZ=Asia/Kathmandu"}, "s3"), here);
  EXPECT_EQ(sealed_under(f, {"/usr/bin/env", "LC_ALL=tr_TR.UTF-8", "LANG=de_DE"}, "s4"), here);
  EXPECT_EQ(sealed_under(f, {"/usr/bin/env", "HOME=" + (f.folder / "home").string()}, "s5"), here);
  EXPECT_EQ(sealed_under(f, {"/usr/bin/env", "-i"}, "s6"), here);
}

TEST(SameEverywhere, HowGitStoresTheCommitDoesNotMatter) {
  const Fixture f;
  const std::string here = f.seal()->digest.str();
  f.repo.git({"gc", "-q", "--aggressive", "--prune=now"});
  EXPECT_EQ(sealed_under(f, {"/usr/bin/env"}, "s1"), here);
  f.repo.git({"commit-graph", "write", "--reachable"});
  f.repo.git({"multi-pack-index", "write"});
  EXPECT_EQ(sealed_under(f, {"/usr/bin/env"}, "s2"), here);
  // A clone in the place of the original, shallow and with its objects elsewhere.
  fs::rename(f.repo.path(), f.folder / "original");
  test::run(
      {"git", "clone", "-q", "--shared", (f.folder / "original").string(), f.repo.path().string()});
  EXPECT_EQ(sealed_under(f, {"/usr/bin/env"}, "s3"), here);
  fs::remove_all(f.repo.path());
  test::run({"git", "clone", "-q", "--depth=1", "file://" + (f.folder / "original").string(),
             f.repo.path().string()});
  EXPECT_EQ(sealed_under(f, {"/usr/bin/env"}, "s4"), here);
}

TEST(SameEverywhere, ModesAndTimesOnDiskDoNotMatter) {
  const Fixture f;
  const auto here = f.seal()->digest;
  fs::permissions(f.folder / "corpus/a.bin", fs::perms::owner_read);
  fs::permissions(f.folder / "train.yaml", fs::perms::owner_all);
  fs::last_write_time(f.repo.path() / "train.py",
                      fs::file_time_type::clock::now() - std::chrono::hours(1000));
  EXPECT_EQ(f.seal()->digest, here);
}

TEST(SameEverywhere, AnotherUserIsToldHowToTrustTheRepository) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const Fixture f;
  const std::string here = f.seal()->digest.str();
  fs::permissions(f.folder.path(), fs::perms::all);
  fs::copy_file(SEAL_ONCE, f.folder / "seal_once");  // the build folder may be closed to others
  const auto as_nobody = [&](const std::string& store, const std::string& home) {
    return test::run_program({"/usr/bin/setpriv", "--reuid=65534", "--regid=65534",
                              "--clear-groups", "/usr/bin/env", "-i", "HOME=" + home,
                              (f.folder / "seal_once").string(),
                              (f.folder / "bundle.yaml").string(), (f.folder / store).string()});
  };
  const auto refused = as_nobody("s1", "/nonexistent");
  EXPECT_EQ(refused.exit_code, 2) << refused.output;
  EXPECT_NE(refused.output.find("git config --global --add safe.directory"), std::string::npos)
      << refused.output;
  f.write("home/.gitconfig", "[safe]\n directory = " + f.repo.path().string() + "\n");
  const auto trusted = as_nobody("s2", (f.folder / "home").string());
  EXPECT_EQ(trusted.output, here + "\n");
}

}  // namespace
}  // namespace qualify::store
