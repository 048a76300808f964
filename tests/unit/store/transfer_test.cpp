#include "qualify/store/transfer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fixture.hpp"

namespace qualify::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string tar(const Fixture& f, const std::vector<std::string>& arguments) {
  std::vector<std::string> argv{"tar"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return test::run(argv, f.folder.path());
}

/// Everything below a folder: path and content.
std::map<std::string, std::string> snapshot(const fs::path& folder) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() != ".lock") {
      all[entry.path().string()] = read_file(entry.path()).value();
    }
  }
  return all;
}

TEST(Transfer, AnExportIsImportedElsewhereUnchanged) {
  const Fixture f;
  const auto sealed = f.seal().value();
  ASSERT_TRUE(export_bundle(f.store(), sealed.digest, f.folder / "b.tar"));
  auto other = f.store("other");
  const auto imported = import_bundles(other, f.folder / "b.tar");
  ASSERT_TRUE(imported) << imported.error().describe();
  EXPECT_THAT(*imported, ElementsAre(sealed.digest));
  EXPECT_TRUE(verify(other, sealed.digest).empty());
  const auto loaded = load(other, sealed.digest).value();
  EXPECT_EQ(to_json(loaded), to_json(sealed));
  EXPECT_EQ(loaded.data.at(0).path, "");  // a place on the sealing machine means nothing here
  // Again changes nothing, and the export is the same bytes from anywhere.
  ASSERT_TRUE(import_bundles(other, f.folder / "b.tar"));
  ASSERT_TRUE(export_bundle(other, sealed.digest, f.folder / "c.tar"));
  EXPECT_EQ(read_file(f.folder / "b.tar").value(), read_file(f.folder / "c.tar").value());
  EXPECT_EQ(export_bundle(other, sealed.digest, f.folder / "c.tar").error().code,
            Errc::already_exists);
}

TEST(Transfer, SkopeoCarriesBundlesWithTheirDigests) {
  const Fixture f;
  const auto sealed = f.seal().value();
  const std::string tag = "demo-" + sealed.digest.brief();
  const std::string base = f.folder.path().string();
  test::run({"skopeo", "copy", "-q", "oci:" + base + "/store:" + tag, "dir:" + base + "/d"});
  test::run({"skopeo", "copy", "-q", "dir:" + base + "/d", "oci-archive:" + base + "/s.tar:x"});
  test::run(
      {"skopeo", "copy", "-q", "oci-archive:" + base + "/s.tar:x", "oci:" + base + "/back:x"});
  for (const char* source : {"s.tar", "back"}) {
    auto other = f.store(std::string("from-") + source);
    const auto imported = import_bundles(other, f.folder / source);
    ASSERT_TRUE(imported) << imported.error().describe();
    EXPECT_THAT(*imported, ElementsAre(sealed.digest));
    EXPECT_TRUE(verify(other, sealed.digest).empty());
  }
  EXPECT_TRUE(verify(f.store("back"), sealed.digest).empty());
  // A layout that skopeo wrote is a store like any other.
  const auto again = f.seal("back").value();
  EXPECT_EQ(again.digest, sealed.digest);
  EXPECT_TRUE(verify(f.store("back"), sealed.digest).empty());
}

TEST(Transfer, TheEditedManifestThatSkopeoLetsPassIsFound) {
  const Fixture f;
  const auto sealed = f.seal().value();
  const auto store = f.store();
  const fs::path manifest = store.path_of(sealed.digest);
  std::string bytes = read_file(manifest).value();
  bytes.replace(bytes.find("\"demo\""), 6, "\"Demo\"");
  fs::remove(manifest);
  ASSERT_TRUE(write_file_atomic(manifest, bytes));
  const std::string base = f.folder.path().string();
  EXPECT_EQ(test::exit_code_of({"skopeo", "copy", "-q",
                                "oci:" + base + "/store:demo-" + sealed.digest.brief(),
                                "dir:" + base + "/d"}),
            0);
  const auto faults = verify(store, sealed.digest);
  ASSERT_FALSE(faults.empty());
  EXPECT_THAT(faults[0].describe(), HasSubstr("manifest"));
}

TEST(Import, RefusesEverythingThatIsNotAWholeBundle) {
  const Fixture f;
  const auto sealed = f.seal().value();
  ASSERT_TRUE(export_bundle(f.store(), sealed.digest, f.folder / "good.tar"));
  auto other = f.store("other");
  const auto before = snapshot(f.folder / "other");
  const auto refusal = [&](const std::string& name) {
    const auto imported = import_bundles(other, f.folder / name);
    EXPECT_EQ(snapshot(f.folder / "other"), before) << name;
    return imported ? "accepted" : imported.error().describe();
  };
  const std::string good = read_file(f.folder / "good.tar").value();
  f.write("cut.tar", good.substr(0, good.size() / 2 / 512 * 512));
  EXPECT_THAT(refusal("cut.tar"), HasSubstr("tar"));
  std::string flipped = good;
  flipped[flipped.find("print('hello')")] ^= 1;
  f.write("flipped.tar", flipped);
  EXPECT_THAT(refusal("flipped.tar"), HasSubstr("has the digest"));
  test::run({"gzip", "-k", (f.folder / "good.tar").string()});
  EXPECT_THAT(refusal("good.tar.gz"), HasSubstr("uncompressed tar"));
  EXPECT_THAT(refusal("absent.tar"), HasSubstr("absent.tar"));

  f.write("evil", "x");
  fs::copy_file(f.folder / "good.tar", f.folder / "dots.tar");
  fs::permissions(f.folder / "dots.tar", fs::perms::owner_all);
  tar(f, {"rPf", "dots.tar", "--transform=s,evil,../evil,", "evil"});
  EXPECT_THAT(refusal("dots.tar"), HasSubstr("name that leaves it"));
  fs::copy_file(f.folder / "good.tar", f.folder / "absolute.tar");
  fs::permissions(f.folder / "absolute.tar", fs::perms::owner_all);
  tar(f, {"rPf", "absolute.tar", (f.folder / "evil").string()});
  EXPECT_THAT(refusal("absolute.tar"), HasSubstr("name that leaves it"));
  fs::copy_file(f.folder / "good.tar", f.folder / "extra.tar");
  fs::permissions(f.folder / "extra.tar", fs::perms::owner_all);
  tar(f, {"rf", "extra.tar", "--transform=s,evil,blobs/sha256/" + sha256("x").hex() + ",", "evil"});
  EXPECT_THAT(refusal("extra.tar"), HasSubstr("which no bundle names"));
  fs::create_symlink("/etc/passwd", f.folder / "link");
  fs::copy_file(f.folder / "good.tar", f.folder / "link.tar");
  fs::permissions(f.folder / "link.tar", fs::perms::owner_all);
  tar(f, {"rf", "link.tar", "--transform=s,^link,blobs/sha256/" + sha256("y").hex() + ",", "link"});
  EXPECT_THAT(refusal("link.tar"), HasSubstr("no part of a layout"));
}

}  // namespace
}  // namespace qualify::store
