#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "fixture.hpp"
#include "qualify/store/garbage.hpp"
#include "qualify/store/transfer.hpp"
#include "support/program.hpp"

/// What goes wrong around a store: each fault is said by name, with the exit code of its kind, and
/// the store is as it was.
namespace qualify::store {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<std::string> sealing(const Fixture& f) {
  return {SEAL_ONCE, (f.folder / "bundle.yaml").string(), (f.folder / "s").string()};
}

/// Nothing is listed, nothing half-written lies there, and the next seal works.
void expect_as_it_was(const LargeFixture& f, const std::string& what) {
  auto store = BlobStore::open(f.folder / "s");
  ASSERT_TRUE(store) << what << ": " << store.error().describe();
  // Only a sync that fails after the last rename leaves the bundle, whole.
  const std::vector<Bundle> bundles = list(*store).value();
  for (const Bundle& bundle : bundles) {
    EXPECT_TRUE(verify(*store, bundle.digest).empty()) << what;
    EXPECT_THAT(what, HasSubstr("cannot sync folder"));
  }
  for (const auto& entry : fs::recursive_directory_iterator(store->root())) {
    EXPECT_EQ(entry.path().filename().string().find(".tmp"), std::string::npos) << what;
    EXPECT_FALSE(entry.path().filename().string().starts_with(".index")) << what;
  }
}

/// A disk that is full, or fails, at one step after the other.
class EveryStep : public ::testing::TestWithParam<const char*> {
 protected:
  /// Runs seal_once with the n-th of each kind of call failing, for every n; `again` does the same
  /// afterwards, without a fault, and says which bundle it was.
  template <class Again>
  void walk(const LargeFixture& f, const std::vector<std::string>& arguments,
            const Digest& expected, const Again& again) const {
    const std::string log = (f.folder / "log").string();
    int failures = 0;
    for (const std::string call : {"write", "fsync", "fchmod", "rename", "mkdir", "utimensat"}) {
      for (int step = 1;; ++step) {
        fs::remove_all(f.folder / "s");
        const auto ran = test::run_program(
            std::vector<std::string>{
                "/usr/bin/strace", "-qq", "-f", "-o", log, "-e", "trace=" + call, "-e",
                "inject=" + call + ":error=" + GetParam() + ":when=" + std::to_string(step),
                SEAL_ONCE} +
            arguments);
        if (read_file(log)->find("(INJECTED)") == std::string::npos) break;
        const std::string what = call + " " + std::to_string(step) + ": " + ran.output;
        if (ran.exit_code == 0) {
          // What failed was only of use (the seal cache, space set aside): the bundle is whole.
          const auto store = BlobStore::open(f.folder / "s");
          ASSERT_TRUE(store) << what;
          ASSERT_TRUE(verify(*store, expected).empty()) << what;
        } else {
          ++failures;
          ASSERT_EQ(ran.exit_code, 2) << what;
          const bool full = std::string(GetParam()) == "ENOSPC";
          EXPECT_THAT(ran.output, HasSubstr(full ? "No space left" : "Input/output")) << what;
          EXPECT_THAT(ran.output, HasSubstr(f.folder.path().string())) << what;
          expect_as_it_was(f, what);
        }
        ASSERT_EQ(again(), expected) << what;
        ASSERT_FALSE(HasFailure());
      }
    }
    EXPECT_GT(failures, 30);
  }
};

TEST_P(EveryStep, OfASealThatFailsIsSaidAndLeavesTheStoreAsItWas) {
  const LargeFixture f;
  const auto expected = f.seal("reference").value().digest;
  walk(f, {"--one-thread", (f.folder / "bundle.yaml").string(), (f.folder / "s").string()},
       expected, [&] { return f.seal("s").value().digest; });
}

TEST_P(EveryStep, OfAnImportThatFailsIsSaidAndLeavesTheStoreAsItWas) {
  const LargeFixture f;
  const auto expected = f.seal("reference").value().digest;
  const fs::path archive = f.folder / "b.tar";
  ASSERT_TRUE(export_bundle(f.store("reference"), expected, archive));
  walk(f, {"--import", archive.string(), (f.folder / "s").string()}, expected, [&] {
    auto store = f.store("s");
    const auto imported = import_bundles(store, archive).value();
    EXPECT_TRUE(verify(store, imported.at(0)).empty());
    return imported.at(0);
  });
}
INSTANTIATE_TEST_SUITE_P(Faults, EveryStep, ::testing::Values("ENOSPC", "EIO"));

TEST(Faults, AReadThatFailsNamesItsFile) {
  const LargeFixture f;
  for (const char* name : {"bundle.yaml", "train.yaml", "corpus/a.bin", "image.sqsh"}) {
    const std::string path = (f.folder / name).string();
    fs::remove_all(f.folder / "s");  // what it remembers of an older file is not read again
    const auto ran = test::run_program(
        std::vector<std::string>{"/usr/bin/strace", "-qq", "-f", "-o", "/dev/null", "-P", path,
                                 "-e", "trace=read", "-e", "inject=read:error=EIO:when=1"} +
        sealing(f));
    EXPECT_EQ(ran.exit_code, 2) << name;
    EXPECT_THAT(ran.output, AllOf(HasSubstr(path), HasSubstr("Input/output error"))) << name;
  }
}

TEST(Faults, AnImportWhoseArchiveCannotBeReadNamesItAndShowsNothing) {
  const LargeFixture f;
  const auto expected = f.seal("reference").value().digest;
  const fs::path archive = f.folder / "b.tar";
  ASSERT_TRUE(export_bundle(f.store("reference"), expected, archive));
  const std::string log = (f.folder / "log").string();
  int failures = 0;
  for (const std::string call : {"read", "pread64"}) {
    for (int step = 1;; ++step) {
      fs::remove_all(f.folder / "s");
      const auto ran = test::run_program(std::vector<std::string>{
          "/usr/bin/strace", "-qq", "-f", "-o", log, "-P", archive.string(), "-e", "trace=" + call,
          "-e", "inject=" + call + ":error=EIO:when=" + std::to_string(step), SEAL_ONCE, "--import",
          archive.string(), (f.folder / "s").string()});
      if (read_file(log)->find("(INJECTED)") == std::string::npos) break;
      ++failures;
      const std::string what = call + " " + std::to_string(step) + ": " + ran.output;
      ASSERT_EQ(ran.exit_code, 2) << what;
      EXPECT_THAT(ran.output, AllOf(HasSubstr(archive.string()), HasSubstr("Input/output error")))
          << what;
      expect_as_it_was(f, what);
    }
  }
  EXPECT_GT(failures, 10);
}

/// Stops a seal into a new store at its second read of `name`, calls `change`, lets it go on; what
/// it said. New, because a store that has seen a file which is some seconds old by now does not
/// read it again.
template <class Change>
test::Ran changed_while_read(const LargeFixture& f, const std::string& name, const Change& change) {
  const std::string log = (f.folder / "log").string();
  fs::remove(log);
  fs::remove_all(f.folder / "s");
  test::Ran ran;
  std::atomic<bool> ended = false;
  std::jthread running([&] {
    ran =
        test::run_program(std::vector<std::string>{"/usr/bin/strace", "-qq", "-f", "-o", log, "-P",
                                                   (f.folder / name).string(), "-e", "trace=read",
                                                   "-e", "inject=read:signal=SIGSTOP:when=2"} +
                          sealing(f));
    ended = true;
  });
  // strace says who stopped; then nothing goes on until it is told to.
  std::string text;
  while (!ended && text.find("stopped by SIGSTOP") == std::string::npos) {
    std::this_thread::yield();
    text = read_file(log).value_or("");
  }
  if (ended) {
    running.join();
    ADD_FAILURE() << "it never stopped: " << text;
    return ran;
  }
  change();
  const int process = std::stoi(text.substr(text.rfind('\n', text.find("--- SIGSTOP")) + 1));
  // strace counts each thread's reads by themselves: another may stop it again.
  while (!ended) {
    ::kill(process, SIGCONT);
    std::this_thread::yield();
  }
  running.join();
  return ran;
}

TEST(Faults, AFileThatChangesOrVanishesWhileItIsReadIsRefused) {
  const LargeFixture f;
  for (const std::string name : {"corpus/large.bin", "image.sqsh"}) {
    const fs::path file = f.folder / name;
    const std::string before = read_file(file).value();
    const auto check = [&](const char* what, const test::Ran& ran) {
      EXPECT_EQ(ran.exit_code, 5) << what << ran.output;
      EXPECT_THAT(ran.output, AllOf(HasSubstr(file.string()), HasSubstr("changed while it was")))
          << what;
      expect_as_it_was(f, what);
      fs::remove(file);
      f.write(name, before);
    };
    check("grown", changed_while_read(f, name, [&] { std::ofstream(file, std::ios::app) << "x"; }));
    check("cut", changed_while_read(f, name, [&] { fs::resize_file(file, before.size() / 2); }));
    check("edited", changed_while_read(f, name, [&] {
            std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
            stream.seekp(static_cast<std::streamoff>(before.size() / 2));
            stream << "another";
          }));
    check("replaced", changed_while_read(f, name, [&] {
            f.write("other", before);
            fs::rename(f.folder / "other", file);
          }));
    check("gone", changed_while_read(f, name, [&] { fs::remove(file); }));
  }
  EXPECT_TRUE(f.seal("s"));
}

bool shares_blocks(const fs::path& folder) {
  const Fd from(::open((folder / "bundle.yaml").c_str(), O_RDONLY));
  const Fd to(::open((folder / "clone").c_str(), O_RDWR | O_CREAT, 0600));
  return ::ioctl(to.get(), FICLONE, from.get()) == 0;
}

TEST(Faults, AContainerLargerThanTheDiskIsRefusedBeforeItIsRead) {
  const LargeFixture f;
  if (shares_blocks(f.folder.path())) GTEST_SKIP() << "the disk shares blocks: there is room";
  struct statvfs disk {};
  ASSERT_EQ(::statvfs(f.folder.path().c_str(), &disk), 0);
  fs::resize_file(f.folder / "image.sqsh", disk.f_blocks * disk.f_frsize + 1);  // a hole
  const auto sealed = f.seal("s");
  ASSERT_FALSE(sealed);
  EXPECT_EQ(sealed.error().code, Errc::no_space);
  EXPECT_THAT(sealed.error().describe(),
              AllOf(HasSubstr((f.folder / "image.sqsh").string()), HasSubstr("no room")));
  expect_as_it_was(f, "no room");
}

TEST(Faults, PermissionDeniedNamesEachFile) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const LargeFixture f;
  for (const char* name : {"train.yaml", "image.sqsh", "corpus/a.bin"}) {
    fs::permissions(f.folder / name, fs::perms::none);
  }
  fs::permissions(f.folder.path(), fs::perms::all);
  const auto ran = test::in_child_without_rights([&]() -> std::string {
    const auto sealed = f.seal("s");
    return sealed ? "accepted" : sealed.error().describe();
  });
  for (const char* name : {"train.yaml", "image.sqsh", "corpus/a.bin"}) {
    EXPECT_THAT(ran.output, HasSubstr((f.folder / name).string() + ": cannot open")) << name;
  }
  EXPECT_THAT(ran.output, HasSubstr("Permission denied"));
}

TEST(Faults, NamesThatCannotBeSealedAreSaid) {
  {
    const Fixture f;
    f.write("corpus/caf\xe9", "latin");
    const auto sealed = f.seal();
    ASSERT_FALSE(sealed);
    EXPECT_EQ(exit_for(sealed.error().code), Exit::usage);
    EXPECT_THAT(sealed.error().describe(), AllOf(HasSubstr("caf\\xe9"), HasSubstr("UTF-8")));
  }
  {
    Fixture f;
    const std::string path(4096, 'a');
    f.replace("file: train.yaml", "file: " + path);
    const auto sealed = f.seal();
    ASSERT_FALSE(sealed);
    EXPECT_EQ(exit_for(sealed.error().code), Exit::usage);
    EXPECT_THAT(sealed.error().describe(), HasSubstr("File name too long"));
  }
  {
    // A path of 4,096 bytes in git, which needs no such path on disk.
    const Fixture f;
    const std::string blob = f.repo.git({"hash-object", "-w", "train.py"});
    std::string tree = "100644 blob " + blob + "\tleaf\n";
    f.write("list", tree);
    for (int i = 0; i < 16; ++i) {
      const std::string id = test::run(
          {"/bin/sh", "-c", "git mktree <" + (f.folder / "list").string()}, f.repo.path());
      f.write("list", "040000 tree " + id.substr(0, 40) + "\t" + std::string(255, 'd') + "\n");
    }
    const std::string top =
        test::run({"/bin/sh", "-c", "git mktree <" + (f.folder / "list").string()}, f.repo.path());
    f.repo.git({"update-ref", "HEAD", f.repo.git({"commit-tree", "-m", "x", top.substr(0, 40)})});
    f.repo.git({"reset", "-q", "--mixed"});
    const auto sealed = f.seal("store", {.allow_dirty = true});
    ASSERT_FALSE(sealed);
    EXPECT_EQ(exit_for(sealed.error().code), Exit::usage);
    EXPECT_THAT(sealed.error().describe(), HasSubstr("longer than 3840 bytes"));
    EXPECT_LT(sealed.error().describe().size(), 1000U);
  }
}

TEST(Faults, ATruncatedOrSwappedBlobIsFoundByEveryReader) {
  const Fixture f;
  const auto sealed = f.seal().value();
  const auto store = f.store();
  const fs::path blob = store.path_of(sealed.code[0].archive.digest);
  const std::string bytes = read_file(blob).value();
  const auto everybody = [&](const char* what) {
    const auto faults = verify(store, sealed.digest);
    ASSERT_EQ(faults.size(), 1U) << what;
    EXPECT_EQ(faults[0].code, Errc::integrity) << what;
    EXPECT_THAT(faults[0].describe(), HasSubstr(blob.string())) << what;
    EXPECT_EQ(exit_for(materialize(store, sealed, f.folder / "jobs/one").error().code),
              Exit::integrity)
        << what;
    EXPECT_EQ(exit_for(export_bundle(store, sealed.digest, f.folder / "b.tar").error().code),
              Exit::integrity)
        << what;
    EXPECT_TRUE(fs::is_empty(f.folder / "jobs")) << what;
    EXPECT_FALSE(fs::exists(f.folder / "b.tar")) << what;
  };
  fs::permissions(blob, fs::perms::owner_all);
  for (const std::size_t size : {bytes.size() - 1, bytes.size() / 2, std::size_t{0}}) {
    fs::resize_file(blob, size);
    everybody("truncated");
  }
  // The right bytes, but through a link: who owns its target could change them.
  f.write("elsewhere", bytes);
  fs::remove(blob);
  fs::create_symlink(f.folder / "elsewhere", blob);
  everybody("a link");
  fs::remove(blob);
  fs::create_directory(blob);
  everybody("a folder");
}

TEST(Faults, ALinkInThePlaceOfTheBlobsFolderIsNoStore) {
  const Fixture f;
  const auto sealed = f.seal().value();
  const auto store = f.store();
  fs::rename(store.root() / "blobs/sha256", f.folder / "moved");
  fs::create_directory_symlink(f.folder / "moved", store.root() / "blobs/sha256");
  EXPECT_EQ(BlobStore::open(store.root()).error().code, Errc::integrity);
  EXPECT_FALSE(verify(store, sealed.digest).empty());
}

TEST(Faults, AFileSystemWithoutLocksIsSaid) {
  const LargeFixture f;
  const auto ran = test::run_program(std::vector<std::string>{"/usr/bin/strace", "-qq", "-f", "-o",
                                                              "/dev/null", "-e", "trace=flock",
                                                              "-e", "inject=flock:error=ENOSYS"} +
                                     sealing(f));
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.output, AllOf(HasSubstr("collect.lock"), HasSubstr("-o flock")));
}

TEST(Faults, WithoutThreadsItOnlyTakesLonger) {
  const LargeFixture f;
  const auto ran =
      test::run_program(std::vector<std::string>{
                            "/usr/bin/strace", "-qq", "-f", "-o", (f.folder / "log").string(), "-e",
                            "trace=clone,clone3", "-e", "inject=clone,clone3:error=EAGAIN"} +
                        sealing(f));
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_THAT(read_file(f.folder / "log").value(), HasSubstr("(INJECTED)"));
  EXPECT_EQ(ran.output, f.seal("other")->digest.str() + "\n");
}

/// Whatever single place of an archive is damaged: nothing else than the sealed bundle gets in.
TEST(Faults, ADamagedArchiveIsRefusedOrMeansTheSame) {
  const Fixture f;
  const auto sealed = f.seal().value();
  ASSERT_TRUE(export_bundle(f.store(), sealed.digest, f.folder / "b.tar"));
  const std::string good = read_file(f.folder / "b.tar").value();
  std::mt19937_64 random(20261130);
  int refused = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string bad = good;
    const std::size_t at = random() % bad.size();
    switch (random() % 5) {
      case 0:
        bad[at] = static_cast<char>(random());
        break;
      case 1:
        bad.erase(at, random() % 700);
        break;
      case 2:
        bad.insert(at, std::string(1 + random() % 700, static_cast<char>(random())));
        break;
      case 3:  // a whole block moved
        bad.insert(at / 512 * 512, bad.substr(random() % bad.size() / 512 * 512, 512));
        break;
      default:
        bad.resize(at);
    }
    f.write("bad.tar", bad);
    auto other = f.store("other");
    const auto imported = import_bundles(other, f.folder / "bad.tar");
    if (!imported) {
      ++refused;
      EXPECT_TRUE(list(other)->empty()) << i;
      const Exit code = exit_for(imported.error().code);
      EXPECT_TRUE(code == Exit::usage || code == Exit::integrity) << imported.error().describe();
      continue;
    }
    ASSERT_EQ(imported->size(), 1U);
    EXPECT_EQ(imported->at(0), sealed.digest) << i;
    EXPECT_TRUE(verify(other, sealed.digest).empty()) << i;
    fs::remove_all(f.folder / "other");
  }
  EXPECT_GT(refused, 1000);
}

/// Sealing, importing and collecting at once, as separate programs.
TEST(Faults, SealsAndAnImportBesideGarbageCollectionsLoseNothing) {
  Fixture f;
  const auto other = f.seal("elsewhere").value().digest;
  ASSERT_TRUE(export_bundle(f.store("elsewhere"), other, f.folder / "b.tar"));
  f.replace("seeds: [7]", "seeds: [8]");
  const auto own = f.seal("reference").value().digest;
  const std::string spec = (f.folder / "bundle.yaml").string();
  auto store = f.store("s");
  for (int round = 0; round < 8; ++round) {
    std::vector<test::Ran> ran(3);
    const std::vector<std::vector<std::string>> all{
        {SEAL_ONCE, spec, (f.folder / "s").string()},
        {SEAL_ONCE, spec, (f.folder / "s").string()},
        {SEAL_ONCE, "--import", (f.folder / "b.tar").string(), (f.folder / "s").string()}};
    {
      std::vector<std::jthread> programs;
      for (std::size_t i = 0; i < all.size(); ++i) {
        programs.emplace_back([&, i] { ran[i] = test::run_program(all[i]); });
      }
      // Without any grace: only the lock protects what the index does not name yet.
      const CollectOptions now{.grace = std::chrono::hours(-1), .remove = true};
      for (int i = 0; i < 20; ++i) {
        const auto collected = collect_garbage(store, now, SystemClock());
        EXPECT_TRUE(collected || collected.error().code == Errc::busy)
            << collected.error().describe();
      }
    }
    for (const test::Ran& one : ran) EXPECT_EQ(one.exit_code, 0) << one.output;
    EXPECT_TRUE(verify(store, own).empty()) << "round " << round;
    EXPECT_TRUE(verify(store, other).empty()) << "round " << round;
    ASSERT_TRUE(collect_garbage(
        store, {.grace = std::chrono::hours(-1), .drop = {own, other}, .remove = true},
        SystemClock()));
    EXPECT_TRUE(fs::is_empty(store.root() / "blobs/sha256")) << "round " << round;
  }
}

}  // namespace
}  // namespace qualify::store
