#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "fixture.hpp"

namespace qualify::store {
namespace {

using ::testing::HasSubstr;

TEST(Seal, WhatIsLoadedIsWhatWasSealed) {
  const Fixture f;
  const auto sealed = f.seal();
  ASSERT_TRUE(sealed) << sealed.error().describe();
  EXPECT_FALSE(sealed->dirty);
  EXPECT_EQ(sealed->code.at(0).commit, f.repo.git({"rev-parse", "HEAD"}));
  const auto store = f.store();
  EXPECT_THAT(verify(store, sealed->digest), ::testing::IsEmpty());
  const auto loaded = load(store, sealed->digest).value();
  EXPECT_EQ(to_json(loaded), to_json(*sealed));
  EXPECT_EQ(loaded.data.at(0).path, (f.folder / "corpus").string());
  EXPECT_NE(loaded.arm("nondeterministic"), nullptr);
  EXPECT_EQ(list(store)->size(), 1U);
  EXPECT_EQ(resolve(store, "demo").value(), sealed->digest);
  EXPECT_EQ(resolve(store, sealed->digest.hex().substr(0, 6)).value(), sealed->digest);
  EXPECT_EQ(resolve(store, "absent").error().code, Errc::not_found);
}

TEST(Seal, TheSameInputsElsewhereGiveTheSameDigest) {
  const Fixture first;
  const Fixture second;
  EXPECT_EQ(first.seal()->digest, second.seal()->digest);
  EXPECT_EQ(first.seal()->digest, first.seal("another-store")->digest);
}

TEST(Seal, ANameMeansItsNewestSeal) {
  Fixture f;
  const auto first = f.seal().value();
  f.replace("seeds: [7]", "seeds: [8]");
  const auto second = f.seal().value();
  EXPECT_NE(first.digest, second.digest);
  EXPECT_EQ(resolve(f.store(), "demo").value(), second.digest);
  f.replace("seeds: [8]", "seeds: [7]");
  ASSERT_EQ(f.seal()->digest, first.digest);
  EXPECT_EQ(resolve(f.store(), "demo").value(), first.digest);
  EXPECT_EQ(list(f.store())->size(), 2U);
}

TEST(Seal, DirtyCodeIsRefusedOrMarked) {
  const Fixture f;
  f.repo.write("train.py", "print('edited')\n");
  EXPECT_EQ(f.seal().error().code, Errc::refused);
  const auto sealed = f.seal("store", {.allow_dirty = true}).value();
  EXPECT_TRUE(sealed.dirty);
  EXPECT_TRUE(load(f.store(), sealed.digest)->dirty);
}

TEST(Seal, CredentialsNeverGetIn) {
  Fixture f;
  f.replace("{NCCL_ALGO: Ring}", "{WANDB_API_KEY: 0123456789abcdef}");
  const auto environment = f.seal();
  ASSERT_FALSE(environment);
  EXPECT_EQ(environment.error().code, Errc::refused);
  EXPECT_THAT(environment.error().describe(), HasSubstr("passed_environment"));
  EXPECT_THAT(environment.error().describe(), ::testing::Not(HasSubstr("0123456789abcdef")));
  f.replace("environment: {WANDB_API_KEY: 0123456789abcdef}",
            "passed_environment: [WANDB_API_KEY]");
  EXPECT_TRUE(f.seal());
  f.write("train.yaml", "hub:\n  token: hf_abcdefghijklmnopqrstuvwxyz012345\n");
  EXPECT_THAT(f.seal().error().describe(), HasSubstr("train.yaml:2"));
}

TEST(Seal, ConfigsMustParse) {
  const Fixture f;
  f.write("train.yaml", "layers: 4\nlayers: 5\n");
  EXPECT_THAT(f.seal().error().describe(), HasSubstr("train.yaml:2:1: duplicate key 'layers'"));
}

TEST(Seal, DataIsCheckedAgainstAGivenDigest) {
  Fixture f;
  const std::string digest = f.seal()->data.at(0).digest;
  f.replace("{path: corpus}", "{path: corpus, digest: '" + digest + "'}");
  EXPECT_TRUE(f.seal());
  f.write("corpus/sub/b.bin", "bbbc");
  EXPECT_EQ(f.seal().error().code, Errc::refused);
}

TEST(Seal, ContainersAreCheckedAndStored) {
  Fixture f;
  f.replace("seeds:", "container: {kind: sqsh, file: image.sqsh}\nseeds:");
  f.write("image.sqsh", std::string(200, 'x'));
  EXPECT_THAT(f.seal().error().describe(), HasSubstr("not a squashfs image"));
  fs::remove(f.folder / "image.sqsh");
  test::run({"mksquashfs", (f.folder / "corpus").string(), (f.folder / "image.sqsh").string(),
             "-quiet", "-no-progress"});
  const auto sealed = f.seal().value();
  EXPECT_EQ(sealed.container.content.digest, hash_file(f.folder / "image.sqsh")->digest);
  EXPECT_TRUE(verify(f.store(), sealed.digest).empty());
}

TEST(Verify, NamesEveryBrokenHop) {
  const Fixture f;
  const auto sealed = f.seal().value();
  const auto store = f.store();
  const auto break_blob = [&](const Digest& digest) {
    fs::permissions(store.path_of(digest), fs::perms::owner_all);
    std::ofstream(store.path_of(digest), std::ios::app) << "x";
  };
  break_blob(sealed.code[0].archive.digest);
  fs::remove(store.path_of(sealed.configs[0].content.digest));
  const auto faults = verify(store, sealed.digest);
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_THAT(faults[0].describe(), HasSubstr("code/trainer.tar"));
  EXPECT_THAT(faults[1].describe(), HasSubstr("config/train/train.yaml"));
}

TEST(Materialize, LaysOutReadOnlyAndExactly) {
  const Fixture f;
  const auto sealed = f.seal().value();
  const auto store = f.store();
  const fs::path target = f.folder / "job";
  const auto done = materialize(store, sealed, target);
  ASSERT_TRUE(done) << done.error().describe();
  EXPECT_EQ(read_file(target / "code/trainer/train.py").value(), "print('hello')\n");
  EXPECT_EQ(read_file(target / "config/train/train.yaml").value(), "layers: 4\n");
  struct stat status {};
  ASSERT_EQ(::stat((target / "code/trainer/lib").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0555U);
  ASSERT_EQ(::stat((target / "code/trainer/lib/x.py").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0444U);
  EXPECT_EQ(materialize(store, sealed, target).error().code, Errc::already_exists);
  test::run({"chmod", "-R", "u+w", target.string()});
}

TEST(Materialize, AChangedContainerIsFoundAlthoughItStaysInTheStore) {
  Fixture f;
  test::run({"mksquashfs", (f.folder / "corpus").string(), (f.folder / "image.sqsh").string(),
             "-quiet", "-no-progress"});
  f.replace("seeds:", "container: {kind: sqsh, file: image.sqsh}\nseeds:");
  const auto sealed = f.seal().value();
  const auto store = f.store();
  const fs::path blob = store.path_of(sealed.container.content.digest);
  fs::permissions(blob, fs::perms::owner_all);
  std::ofstream(blob, std::ios::app) << "x";
  EXPECT_EQ(materialize(store, sealed, f.folder / "jobs/one").error().code, Errc::integrity);
  EXPECT_TRUE(fs::is_empty(f.folder / "jobs"));
}

TEST(Materialize, ABrokenBlobLeavesNothing) {
  const Fixture f;
  const auto sealed = f.seal().value();
  const auto store = f.store();
  const fs::path blob = store.path_of(sealed.code[0].archive.digest);
  std::string bytes = read_file(blob).value();
  bytes[bytes.find("hello")] = 'H';
  fs::remove(blob);
  ASSERT_TRUE(write_file_atomic(blob, bytes));
  EXPECT_EQ(materialize(store, sealed, f.folder / "jobs/one").error().code, Errc::integrity);
  EXPECT_TRUE(fs::is_empty(f.folder / "jobs"));
}

}  // namespace
}  // namespace qualify::store
