#include "qualify/git/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "qualify/archive/tar.hpp"
#include "support/git_repo.hpp"
#include "support/temp_folder.hpp"

namespace qualify::git {
namespace {

using test::GitRepo;
using test::TempFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string archive_of(const Tree& tree) {
  std::string out;
  const auto done = tree.write_archive([&](std::span<const std::byte> piece) -> Result<void> {
    out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return {};
  });
  EXPECT_TRUE(done) << done.error().describe();
  return out;
}

/// path -> content ("-> target" for links, "* " before executables).
std::map<std::string, std::string> files_in(const std::string& bytes) {
  std::map<std::string, std::string> files;
  std::size_t at = 0;
  archive::TarReader tar([&](std::span<std::byte> buffer) -> Result<std::size_t> {
    const std::size_t count = std::min(buffer.size(), bytes.size() - at);
    std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()) + at, count, buffer.data());
    at += count;
    return count;
  });
  while (const auto entry = tar.next().value()) {
    std::string content(entry->size, '\0');
    EXPECT_EQ(tar.read(std::as_writable_bytes(std::span(content))).value(), entry->size);
    if (entry->kind == archive::Entry::Kind::symlink) content = "-> " + entry->target;
    if (entry->kind == archive::Entry::Kind::file && entry->executable) content = "* " + content;
    files[entry->path] = content;
  }
  return files;
}

std::string refusal(const std::filesystem::path& repository, const std::string& revision = "HEAD") {
  const auto tree = Tree::open(repository, revision);
  return tree ? "accepted" : tree.error().describe();
}

TEST(Tree, ContentIsTheObjectDatabases) {
  const TempFolder folder;
  const GitRepo repo(folder / "r");
  repo.write(".gitattributes", "*.txt text eol=crlf\nsecret export-ignore\nversion export-subst\n");
  repo.write("a.txt", "one\ntwo\n");
  repo.write("secret", "kept\n");
  repo.write("version", "$Format:%H$\n");
  repo.write("run.sh", "#!/bin/sh\n");
  fs::permissions(repo.path() / "run.sh", fs::perms::owner_all);
  fs::create_symlink("a.txt", repo.path() / "link");
  const std::string commit = repo.commit();
  repo.git({"checkout", "-q", "--", "."});

  const auto tree = Tree::open(repo.path(), "HEAD").value();
  EXPECT_EQ(tree.commit(), commit);
  EXPECT_FALSE(tree.dirty());
  const auto files = files_in(archive_of(tree));
  EXPECT_EQ(files.at("a.txt"), "one\ntwo\n");
  EXPECT_EQ(files.at("secret"), "kept\n");
  EXPECT_EQ(files.at("version"), "$Format:%H$\n");
  EXPECT_EQ(files.at("run.sh"), "* #!/bin/sh\n");
  EXPECT_EQ(files.at("link"), "-> a.txt");
}

TEST(Tree, EveryKindOfDirtIsRefusedByName) {
  const TempFolder folder;
  const GitRepo repo(folder / "r");
  for (const char* name : {"changed", "staged", "removed", "assumed", "skipped"}) {
    repo.write(name, "1\n");
  }
  repo.commit();
  EXPECT_EQ(refusal(repo.path()), "accepted");
  repo.write("untracked", "not part of any commit\n");
  EXPECT_EQ(refusal(repo.path()), "accepted");

  repo.git({"update-index", "--assume-unchanged", "assumed"});
  repo.git({"update-index", "--skip-worktree", "skipped"});
  for (const char* name : {"changed", "staged", "assumed", "skipped"}) repo.write(name, "2\n");
  repo.write("new", "1\n");
  repo.git({"add", "staged", "new"});
  fs::remove(repo.path() / "removed");
  const std::string text = refusal(repo.path());
  for (const char* expected :
       {"changed: has changes", "staged: has staged changes", "new: is added",
        "removed: is deleted", "assumed: is marked assume-unchanged",
        "skipped: is marked skip-worktree", "--allow-dirty"}) {
    EXPECT_THAT(text, HasSubstr(expected));
  }
  // Allowed, it is still the commit that is sealed.
  const auto tree = Tree::open(repo.path(), "HEAD", {.allow_dirty = true}).value();
  EXPECT_TRUE(tree.dirty());
  EXPECT_EQ(files_in(archive_of(tree)).at("changed"), "1\n");
}

TEST(Tree, ADirtyWorktreeSaysNothingAboutAnotherCommit) {
  const TempFolder folder;
  const GitRepo repo(folder / "r");
  repo.write("a", "1\n");
  const std::string first = repo.commit();
  repo.write("a", "2\n");
  repo.commit();
  repo.write("a", "3\n");
  EXPECT_THAT(refusal(repo.path()), HasSubstr("a: has changes"));
  const auto tree = Tree::open(repo.path(), first).value();
  EXPECT_EQ(files_in(archive_of(tree)).at("a"), "1\n");
}

TEST(Tree, SubmodulesComeAtTheirCommitsRecursively) {
  const TempFolder folder;
  const GitRepo inner(folder / "inner");
  inner.write("deep.txt", "deep\n");
  inner.commit();
  const GitRepo middle(folder / "middle");
  middle.write("m.txt", "m\n");
  middle.git({"submodule", "-q", "add", inner.path().string(), "in"});
  middle.commit();
  const GitRepo outer(folder / "outer");
  outer.write("o.txt", "o\n");
  outer.git({"submodule", "-q", "add", middle.path().string(), "lib/mid"});
  outer.commit();
  EXPECT_THAT(refusal(outer.path()), HasSubstr("git submodule update --init --recursive"));
  outer.git({"submodule", "-q", "update", "--init", "--recursive"});
  const auto files = files_in(archive_of(Tree::open(outer.path(), "HEAD").value()));
  EXPECT_EQ(files.at("lib/mid/m.txt"), "m\n");
  EXPECT_EQ(files.at("lib/mid/in/deep.txt"), "deep\n");

  std::ofstream(outer.path() / "lib/mid/m.txt") << "edited\n";
  EXPECT_THAT(refusal(outer.path()), HasSubstr("lib/mid/m.txt: has changes"));
  const GitRepo checkout = outer;
  checkout.git({"-C", "lib/mid", "commit", "-q", "-a", "-m", "moved"});
  EXPECT_THAT(refusal(outer.path()),
              HasSubstr("lib/mid: submodule is checked out at another commit"));
}

TEST(Tree, AnLfsPointerIsReplacedByItsObject) {
  const TempFolder folder;
  const GitRepo repo(folder / "r");
  const std::string content(5000, 'w');
  const Digest digest = sha256(content);
  repo.write("weights.bin",
             "version https://git-lfs.github.com/spec/v1\noid " + digest.str() + "\nsize 5000\n");
  repo.commit();
  const auto without = Tree::open(repo.path(), "HEAD").value();
  const auto missing =
      without.write_archive([](std::span<const std::byte>) { return Result<void>(); });
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::refused);
  EXPECT_THAT(missing.error().describe(), HasSubstr("weights.bin: its Git LFS object"));

  const std::string hex = digest.hex();
  const fs::path object =
      repo.path() / ".git/lfs/objects" / hex.substr(0, 2) / hex.substr(2, 2) / hex;
  fs::create_directories(object.parent_path());
  ASSERT_TRUE(write_file_atomic(object, content));
  EXPECT_EQ(files_in(archive_of(without)).at("weights.bin"), content);
  // As git-lfs checks it out: the worktree holds the object, and that is no edit.
  repo.write("weights.bin", content);
  EXPECT_EQ(refusal(repo.path()), "accepted");

  ASSERT_TRUE(write_file_atomic(object, std::string(5000, 'v')));
  const auto wrong =
      without.write_archive([](std::span<const std::byte>) { return Result<void>(); });
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Errc::integrity);
}

TEST(Tree, RefusesNamesAndLinksThatCannotBeLaidOut) {
  const TempFolder folder;
  const GitRepo repo(folder / "r");
  repo.write("Makefile", "1\n");
  repo.write("makefile", "2\n");
  repo.write("caf\xe9", "latin\n");
  fs::create_symlink("../outside", repo.path() / "out");
  fs::create_symlink("/etc/passwd", repo.path() / "absolute");
  repo.commit();
  const std::string text = refusal(repo.path());
  for (const char* expected :
       {"'Makefile' and 'makefile'", "caf\\xe9", "out: symbolic link leads out",
        "absolute: symbolic link leads out"}) {
    EXPECT_THAT(text, HasSubstr(expected));
  }
}

TEST(Tree, SaysPlainlyWhatItCannotOpen) {
  const TempFolder folder;
  EXPECT_THAT(refusal(folder / "missing"), HasSubstr("no such folder"));
  fs::create_directories(folder / "plain");
  EXPECT_THAT(refusal(folder / "plain"), HasSubstr("not the top folder of a git repository"));
  const GitRepo repo(folder / "r");
  EXPECT_THAT(refusal(repo.path()), HasSubstr("cannot resolve revision 'HEAD'"));
  repo.write("a", "1\n");
  repo.commit();
  EXPECT_THAT(refusal(repo.path(), "no-such-branch"), HasSubstr("'no-such-branch'"));
  const GitRepo sha256_repo(folder / "s", {"--object-format=sha256"});
  const auto tree = Tree::open(sha256_repo.path(), "HEAD");
  ASSERT_FALSE(tree);
  EXPECT_EQ(tree.error().code, Errc::unsupported);
  EXPECT_THAT(tree.error().describe(), HasSubstr("SHA-256 object names"));
}

TEST(Tree, ArchiveDoesNotDependOnWhereOrHowTheObjectsLie) {
  const TempFolder folder;
  const GitRepo repo(folder / "r");
  for (int i = 0; i < 50; ++i) {
    repo.write("d" + std::to_string(i % 7) + "/f" + std::to_string(i), std::to_string(i) + "\n");
  }
  repo.commit();
  const Digest loose = sha256(archive_of(Tree::open(repo.path(), "HEAD").value()));
  repo.git({"gc", "-q"});
  EXPECT_EQ(sha256(archive_of(Tree::open(repo.path(), "HEAD").value())), loose);
  test::run({"git", "clone", "-q", "--bare", repo.path().string(), (folder / "bare").string()});
  EXPECT_EQ(sha256(archive_of(Tree::open(folder / "bare", "main").value())), loose);
}

/// Cuts the loose object of `revision` to `size` bytes.
void cut(const std::filesystem::path& repo, const std::string& revision, std::uintmax_t size) {
  std::string id = test::run({"git", "-C", repo.string(), "rev-parse", revision});
  id.resize(40);
  const auto file = repo / ".git/objects" / id.substr(0, 2) / id.substr(2);
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  std::filesystem::resize_file(file, size);
}

TEST(Tree, AnObjectThatWasCutShortIsSaidWhateverIsLeftOfIt) {
  for (const char* revision : {"HEAD", "HEAD^{tree}", "HEAD:a"}) {
    for (const std::uintmax_t size : {0, 1, 2, 3, 5, 10, 15, 20}) {
      const TempFolder folder;
      GitRepo repo(folder / "r");
      repo.write("a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
      repo.commit();
      cut(folder / "r", revision, size);
      const auto tree = Tree::open(folder / "r", "HEAD");
      const auto done = tree ? tree->write_archive([](auto) { return Result<void>(); })
                             : Result<void>(tl::unexpected(tree.error()));
      ASSERT_FALSE(done) << revision << " of " << size << " bytes";
      if (size > 1) {
        EXPECT_THAT(done.error().hint, HasSubstr("git fsck"));
      }
    }
  }
}

}  // namespace
}  // namespace qualify::git
