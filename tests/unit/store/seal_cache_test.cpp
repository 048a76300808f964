#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "fixture.hpp"
#include "support/program.hpp"

namespace qualify::store {
namespace {

using ::testing::HasSubstr;

/// Inputs count as unchanged for long, however young the test made them.
constexpr SealOptions kSettled{.settle = std::chrono::hours(-1)};

struct WithContainer : Fixture {
  WithContainer() {
    test::run({"mksquashfs", (folder / "corpus").string(), (folder / "image.sqsh").string(),
               "-quiet", "-no-progress"});
    replace("seeds:", "container: {kind: sqsh, file: image.sqsh}\nseeds:");
    write("bundle.yaml", spec_text);
  }
};

/// Runs seal_once and returns which files below the fixture it read from, however it did.
std::set<std::string> files_read(const Fixture& f, bool settled = true) {
  const std::string log = (f.folder / "trace").string();
  const auto ran = test::run_program(
      {"/usr/bin/strace", "-qq", "-f", "-y", "-o", log, "-e",
       "trace=read,readv,pread64,preadv,preadv2,mmap,copy_file_range,sendfile,splice,ioctl",
       SEAL_ONCE, settled ? "--settled" : "--one-thread", (f.folder / "bundle.yaml").string(),
       (f.folder / "store").string()});
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  std::set<std::string> files;
  const std::string trace = read_file(log).value();
  const std::string base = "<" + f.folder.path().string() + "/";
  for (std::size_t at = trace.find(base); at != std::string::npos; at = trace.find(base, at + 1)) {
    const std::size_t begin = at + base.size();
    files.insert(trace.substr(begin, trace.find('>', begin) - begin));
  }
  return files;
}

TEST(SealCache, ASecondSealReadsNoInputsContent) {
  const WithContainer f;
  std::set<std::string> contents{"train.yaml", "corpus/a.bin", "corpus/sub/b.bin", "image.sqsh"};
  for (const char* file : {"HEAD:train.py", "HEAD:lib/x.py"}) {
    const std::string id = f.repo.git({"rev-parse", file});
    contents.insert("code/.git/objects/" + id.substr(0, 2) + "/" + id.substr(2));
  }
  // Git reads again what changed in the tick in which its index was written; as git does, wait.
  f.repo.git({"update-index", "--refresh"});
  const auto first = files_read(f);
  for (const std::string& file : contents) EXPECT_TRUE(first.contains(file)) << file;
  const auto second = files_read(f);
  EXPECT_TRUE(second.contains("bundle.yaml"));
  for (const std::string& file : contents) EXPECT_FALSE(second.contains(file)) << file;
  const auto store = f.store();
  EXPECT_THAT(verify(store, list(store)->at(0).digest), ::testing::IsEmpty());
}

TEST(SealCache, AChangeThatKeepsSizeAndTimeIsSeen) {
  const WithContainer f;
  const auto first = f.seal("store", kSettled).value();
  for (const char* file : {"train.yaml", "corpus/a.bin"}) {
    const auto time = fs::last_write_time(f.folder / file);
    std::string bytes = read_file(f.folder / file).value();
    bytes.back() = bytes.back() == '\n' ? ' ' : '\n';
    f.write(file, bytes);
    fs::last_write_time(f.folder / file, time);
  }
  const auto second = f.seal("store", kSettled).value();
  EXPECT_NE(first.configs[0].content.digest, second.configs[0].content.digest);
  EXPECT_NE(first.data[0].digest, second.data[0].digest);
  EXPECT_EQ(second.digest, f.seal("fresh")->digest);
}

TEST(SealCache, AnotherFileInItsPlaceIsSeen) {
  const WithContainer f;
  const auto first = f.seal("store", kSettled).value();
  f.write("other", "layers: 5\n");
  fs::rename(f.folder / "other", f.folder / "train.yaml");
  f.write("corpus/new.bin", "n");
  fs::rename(f.folder / "corpus/sub/b.bin", f.folder / "corpus/sub/c.bin");
  const auto second = f.seal("store", kSettled).value();
  EXPECT_NE(second.digest, first.digest);
  EXPECT_EQ(second.digest, f.seal("fresh")->digest);
}

TEST(SealCache, AYoungFileIsNotRemembered) {
  const WithContainer f;
  const auto read = [&](bool settled) {
    std::vector<std::string> names;
    for (const std::string& file : files_read(f, settled)) {
      if (!file.starts_with("code/") && !file.starts_with("store/")) names.push_back(file);
    }
    return names;
  };
  const auto first = read(false);  // with the two seconds that people have
  EXPECT_THAT(first, ::testing::IsSupersetOf(
                         {"train.yaml", "image.sqsh", "corpus/a.bin", "corpus/sub/b.bin"}));
  EXPECT_EQ(read(false), first);
  EXPECT_EQ(read(true), first);
  EXPECT_THAT(read(true), ::testing::ElementsAre("bundle.yaml"));
}

TEST(SealCache, ABlobThatIsGoneOrTouchedIsMadeAgain) {
  const WithContainer f;
  const auto sealed = f.seal("store", kSettled).value();
  const auto store = f.store();
  for (const Descriptor& blob :
       {sealed.code[0].archive, sealed.configs[0].content, sealed.container.content}) {
    fs::remove(store.path_of(blob.digest));
    ASSERT_EQ(f.seal("store", kSettled)->digest, sealed.digest) << blob.title;
    EXPECT_TRUE(verify(store, sealed.digest).empty()) << blob.title;
    fs::permissions(store.path_of(blob.digest), fs::perms::owner_all);
    std::ofstream(store.path_of(blob.digest), std::ios::app) << "x";
    EXPECT_FALSE(verify(store, sealed.digest).empty()) << blob.title;
    ASSERT_EQ(f.seal("store", kSettled)->digest, sealed.digest) << blob.title;
    EXPECT_TRUE(verify(store, sealed.digest).empty()) << blob.title;
  }
}

TEST(SealCache, ADamagedCacheIsNoCache) {
  const WithContainer f;
  const auto sealed = f.seal("store", kSettled).value();
  const fs::path file = f.folder / "store/seal-cache";
  const std::string good = read_file(file).value();
  for (const std::string& bad :
       {std::string(), std::string("qualify"), good.substr(0, good.size() / 2), good + "x",
        good.substr(0, good.find('\n') + 1)}) {
    ASSERT_TRUE(write_file_atomic(file, bad));
    EXPECT_EQ(f.seal("store", kSettled)->digest, sealed.digest);
  }
  // Any byte of it, a few bits each; the digest in it finds them.
  for (std::size_t at = 0; at < good.size(); at += 29) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
    ASSERT_TRUE(write_file_atomic(file, bad));
    ASSERT_EQ(f.seal("store", kSettled)->digest, sealed.digest) << at;
  }
}

TEST(SealCache, AnUncheckedConfigIsCheckedOnceThatIsAskedFor) {
  WithContainer f;
  f.write("train.yaml", "a: 1\na: 2\n");
  f.replace("{file: train.yaml}", "{file: train.yaml, check: false}");
  ASSERT_TRUE(f.seal("store", kSettled));
  f.replace(", check: false", "");
  EXPECT_THAT(f.seal("store", kSettled).error().describe(), HasSubstr("duplicate key"));
}

TEST(SealCache, TwoInputsOfOneContentStayKnown) {
  WithContainer f;
  f.replace("configs: {train: {file: train.yaml}}",
            "configs: {train: {file: train.yaml}, same: {file: same.yaml}}");
  f.write("same.yaml", "layers: 4\n");
  f.write("bundle.yaml", f.spec_text);
  (void)files_read(f);
  (void)files_read(f);
  const auto third = files_read(f);
  EXPECT_FALSE(third.contains("train.yaml"));
  EXPECT_FALSE(third.contains("same.yaml"));
}

TEST(Seal, AllInputsFaultsAreReportedAtOnce) {
  WithContainer f;
  f.write("image.sqsh", std::string(200, 'x'));
  f.write("train.yaml", "a: 1\na: 2\n");
  fs::remove_all(f.folder / "corpus");
  for (const unsigned jobs : {1U, 4U}) {
    const std::string text = f.seal("store", {.jobs = jobs}).error().describe();
    EXPECT_THAT(text, HasSubstr("not a squashfs image"));
    EXPECT_THAT(text, HasSubstr("duplicate key 'a'"));
    EXPECT_THAT(text, HasSubstr("corpus"));
    EXPECT_THAT(text, HasSubstr("bundle.yaml:5:18"));
  }
}

TEST(Seal, TheNumberOfJobsChangesNothing) {
  const WithContainer f;
  const auto one = f.seal("one", {.jobs = 1}).value();
  EXPECT_EQ(f.seal("many", {.jobs = 8})->digest, one.digest);
  const auto store = f.store("one");
  for (const Digest& digest : {one.code[0].archive.digest, one.container.content.digest}) {
    fs::permissions(store.path_of(digest), fs::perms::owner_all);
    std::ofstream(store.path_of(digest), std::ios::app) << "x";
  }
  const auto text = [&](unsigned jobs) {
    std::string all;
    for (const Error& fault : verify(store, one.digest, jobs)) all += fault.describe() + "\n";
    return all;
  };
  EXPECT_EQ(text(1), text(8));
  EXPECT_THAT(text(8), HasSubstr("container.sqsh"));
}

TEST(Seal, ALargeFileIsStoredByteForByte) {
  // Past the sizes at which reading, writing and hashing become three.
  for (const std::size_t size : {(1U << 20U) - 1, 1U << 20U, (7U << 20U) + 12345}) {
    WithContainer f;
    std::string image = read_file(f.folder / "image.sqsh").value();
    const std::size_t head = image.size();
    image.resize(size);
    for (std::size_t i = head; i < size; ++i) image[i] = static_cast<char>(i * 2654435761U >> 13U);
    f.write("image.sqsh", image);
    const auto sealed = f.seal().value();
    EXPECT_EQ(sealed.container.content.digest, sha256(image));
    EXPECT_EQ(sealed.container.content.size, size);
    EXPECT_EQ(read_file(f.store().path_of(sealed.container.content.digest)).value(), image);
    EXPECT_TRUE(verify(f.store(), sealed.digest).empty());
  }
}

}  // namespace
}  // namespace qualify::store
