#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "fixture.hpp"
#include "qualify/store/transfer.hpp"

/// Bundles that no seal made: every digest in them is right, what they say is not.
namespace qualify::store {
namespace {

using ::testing::HasSubstr;

/// A layout in which one bundle's config was changed and everything above it made to fit.
class Forgery {
 public:
  Forgery() : store_(fixture_.store()) {
    const Digest sealed = fixture_.seal().value().digest;
    manifest_ = Json::parse(read_file(store_.path_of(sealed)).value());
    const auto config = Digest::parse(manifest_["config"]["digest"].get<std::string>()).value();
    config_ = Json::parse(read_file(store_.path_of(config)).value());
  }

  [[nodiscard]] const BlobStore& store() const { return store_; }
  [[nodiscard]] fs::path folder() const { return fixture_.folder.path(); }

  Json blob(const std::string& content, const Json& like) {
    const auto added = store_.add_bytes(content, like["mediaType"]).value();
    Json descriptor = like;
    descriptor["digest"] = added.digest.str();
    descriptor["size"] = added.size;
    return descriptor;
  }
  Digest with(const std::function<void(Json&)>& change) {
    Json config = config_;
    change(config);
    Json manifest = manifest_;
    manifest["config"] = blob(canonical_bytes(config), manifest["config"]);
    manifest["layers"] = Json::array();
    for (const Json& code : config["code"]) manifest["layers"].push_back(code["archive"]);
    for (const Json& one : config["configs"]) manifest["layers"].push_back(one["content"]);
    for (const Json& data : config["data"]) manifest["layers"].push_back(data["manifest"]);
    manifest["annotations"].begin().value() = config["name"];
    const Json entry = blob(canonical_bytes(manifest),
                            {{"mediaType", "application/vnd.oci.image.manifest.v1+json"}});
    const Json index{{"schemaVersion", 2}, {"manifests", {entry}}};
    EXPECT_TRUE(write_file_atomic(store_.root() / "index.json", index.dump()));
    return Digest::parse(entry["digest"].get<std::string>()).value();
  }
  /// What loading says of it; an import says the same and leaves nothing behind.
  std::string refusal(const std::function<void(Json&)>& change) {
    const auto loaded = load(store_, with(change));
    if (loaded) return "accepted";
    EXPECT_EQ(loaded.error().code, Errc::integrity);
    const fs::path archive = folder() / "forged.tar";
    test::run({"tar", "-C", store_.root().string(), "-cf", archive.string(), "oci-layout",
               "index.json", "blobs"});
    auto other = fixture_.store("other");
    const auto imported = import_bundles(other, archive);
    EXPECT_FALSE(imported);
    EXPECT_TRUE(list(other).value().empty());
    return loaded.error().describe();
  }

 private:
  Fixture fixture_;
  BlobStore store_;
  Json manifest_, config_;
};

TEST(ForgedBundle, IsAcceptedWhereNothingWasChanged) {
  Forgery forgery;
  const Digest digest = forgery.with([](Json&) {});
  const auto bundle = load(forgery.store(), digest);
  ASSERT_TRUE(bundle) << bundle.error().describe();
  EXPECT_TRUE(materialize(forgery.store(), *bundle, forgery.folder() / "job"));
}

TEST(ForgedBundle, WhoseNamesLeaveTheFolderIsRefused) {
  Forgery forgery;
  for (const char* file : {"/tmp/x", "../x", "..", "a/b", "", "x\ny"}) {
    EXPECT_THAT(forgery.refusal([&](Json& c) { c["configs"][0]["file_name"] = file; }),
                HasSubstr("a config's file is named"))
        << file;
  }
  for (const char* name : {"../../../x", "/x", "", ".", "a b", "\x1b[2J"}) {
    EXPECT_THAT(forgery.refusal([&](Json& c) { c["code"][0]["name"] = name; }),
                HasSubstr("code is named"))
        << name;
    EXPECT_THAT(forgery.refusal([&](Json& c) { c["configs"][0]["name"] = name; }),
                HasSubstr("a config is named"));
    EXPECT_THAT(forgery.refusal([&](Json& c) { c["data"][0]["name"] = name; }),
                HasSubstr("data is named"));
    EXPECT_THAT(forgery.refusal([&](Json& c) { c["arms"][0]["name"] = name; }),
                HasSubstr("an arm is named"));
    EXPECT_THAT(forgery.refusal([&](Json& c) { c["name"] = name; }),
                HasSubstr("the bundle is named"));
  }
  EXPECT_THAT(forgery.refusal([](Json& c) { c["outputs"][0]["path"] = "../../x"; }),
              HasSubstr("leaves {output}"));
}

TEST(ForgedBundle, WithTwoOfAKindUnderOneNameIsRefused) {
  Forgery forgery;
  for (const char* kind : {"code", "configs", "arms", "data"}) {
    EXPECT_THAT(forgery.refusal([&](Json& c) { c[kind].push_back(c[kind][0]); }),
                HasSubstr("stands there twice"))
        << kind;
  }
}

TEST(ForgedBundle, ThatCouldNotRunIsRefused) {
  Forgery forgery;
  EXPECT_THAT(forgery.refusal([](Json& c) { c["launch"]["argv"] = Json::array(); }),
              HasSubstr("no program"));
  EXPECT_THAT(forgery.refusal([](Json& c) { c["launch"]["tasks_per_node"] = 0; }),
              HasSubstr("no tasks"));
  EXPECT_THAT(forgery.refusal([](Json& c) { c["arms"] = Json::array(); }), HasSubstr("no arms"));
  EXPECT_THAT(forgery.refusal([](Json& c) { c["topology"]["nodes"] = 0; }), HasSubstr("is 0"));
  EXPECT_THAT(forgery.refusal([](Json& c) { c["environment"]["A=B"] = "x"; }),
              HasSubstr("not the name of an environment variable"));
  EXPECT_THAT(forgery.refusal([](Json& c) { c["container"]["kind"] = "sqsh"; }),
              HasSubstr("has no content"));
}

TEST(ForgedBundle, WhoseSizeNoNumberHoldsIsRefused) {
  Forgery forgery;
  forgery.with([](Json&) {});
  const fs::path file = forgery.store().root() / "index.json";
  Json index = Json::parse(read_file(file).value());
  index["manifests"][0]["size"] = std::uint64_t{1} << 53U;
  ASSERT_TRUE(write_file_atomic(file, index.dump()));
  const auto all = list(forgery.store());
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, Errc::integrity);
  EXPECT_THAT(all.error().describe(), HasSubstr("index.json: a descriptor's size"));
}

TEST(ForgedBundle, WhoseLinkIsReadInTwoWaysIsNotLaidOut) {
  Forgery forgery;
  // "..\0x" is a name to whoever reads all of it, and ".." to the kernel. The marks make room for
  // the bytes that tar does not write.
  fs::create_symlink("..@x", forgery.folder() / "link");
  const std::string tar = (forgery.folder() / "code.tar").string();
  test::run({"tar", "-C", forgery.folder().string(), "--format=pax", "--pax-option=linkpath:=..@x",
             "-cf", tar, "link"});
  std::string bytes = read_file(tar).value();
  const auto at = bytes.find("linkpath=..@x");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 11] = '\0';
  const Digest digest = forgery.with(
      [&](Json& c) { c["code"][0]["archive"] = forgery.blob(bytes, c["code"][0]["archive"]); });
  const auto bundle = load(forgery.store(), digest);
  ASSERT_TRUE(bundle) << bundle.error().describe();
  const auto done = materialize(forgery.store(), *bundle, forgery.folder() / "job");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::integrity);
  EXPECT_FALSE(fs::exists(forgery.folder() / "job"));
}

}  // namespace
}  // namespace qualify::store
