#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "fixture.hpp"
#include "qualify/store/diff.hpp"

namespace qualify::store {
namespace {

using ::testing::HasSubstr;

TEST(Inputs, SeveralRepositoriesAreOneBundle) {
  Fixture f;
  const test::GitRepo plugin(f.folder / "plugin");
  plugin.write("plugin.py", "p = 1\n");
  const std::string first = plugin.commit();
  plugin.write("plugin.py", "p = 2\n");
  plugin.commit();
  f.replace("{trainer: {repository: code}}",
            "{trainer: {repository: code}, plugin: {repository: plugin, revision: HEAD~1}}");
  const auto sealed = f.seal().value();
  ASSERT_EQ(sealed.code.size(), 2U);
  EXPECT_EQ(sealed.code[0].name, "plugin");  // by name, however the file orders them
  EXPECT_EQ(sealed.code[0].commit, first);
  ASSERT_TRUE(materialize(f.store(), sealed, f.folder / "job"));
  EXPECT_EQ(read_file(f.folder / "job/code/plugin/plugin.py").value(), "p = 1\n");
  EXPECT_EQ(read_file(f.folder / "job/code/trainer/train.py").value(), "print('hello')\n");
  test::run({"chmod", "-R", "u+w", (f.folder / "job").string()});

  f.replace("HEAD~1", "HEAD");
  const auto moved = f.seal().value();
  const auto differences = diff(f.store(), sealed, moved).value();
  ASSERT_EQ(differences.size(), 2U);
  EXPECT_EQ(differences[0].input, "code plugin");
  EXPECT_THAT(differences[0].details, ::testing::ElementsAre("changed plugin.py"));
  EXPECT_THAT(differences[1].what, HasSubstr("revision HEAD~1 -> HEAD"));
}

/// Header of a SIF image: launch script, magic, version (sylabs/sif, pkg/sif/sif.go).
std::string sif(const std::string& payload) {
  std::string image(128, '\0');
  image.replace(0, 31, "#!/usr/bin/env run-singularity\n");
  image.replace(32, 9, "SIF_MAGIC");
  image.replace(42, 2, "01");
  return image + payload;
}

TEST(Inputs, ASifImageIsStoredAsItIs) {
  Fixture f;
  f.write("image.sif", sif("payload"));
  f.replace("seeds:", "container: {kind: sif, file: image.sif}\nseeds:");
  const auto sealed = f.seal().value();
  EXPECT_EQ(sealed.container.content.digest, sha256(sif("payload")));
  EXPECT_EQ(sealed.container.content.media_type, "application/vnd.qualify.bundle.container.v1.sif");
  EXPECT_TRUE(verify(f.store(), sealed.digest).empty());
  f.write("image.sif", std::string(200, '\0'));
  EXPECT_THAT(f.seal("other").error().describe(), HasSubstr("not a SIF image"));
  f.write("image.sif", "short");
  EXPECT_THAT(f.seal("other").error().describe(), HasSubstr("too short"));
}

TEST(Inputs, ARegistryReferenceIsRecordedAndNotStored) {
  Fixture f;
  const std::string reference = "nvcr.io/nvidia/nemo@" + sha256("image").str();
  f.replace("seeds:", "container: {kind: reference, reference: '" + reference + "'}\nseeds:");
  const auto sealed = f.seal().value();
  EXPECT_EQ(load(f.store(), sealed.digest)->container.reference, reference);
  EXPECT_EQ(sealed.container.content.size, 0U);
  EXPECT_TRUE(verify(f.store(), sealed.digest).empty());
  f.replace(reference, "nvcr.io/nvidia/nemo:24.09");
  EXPECT_THAT(f.seal().error().describe(), HasSubstr("not pinned by digest"));
}

TEST(Inputs, DataIsKnownByItsManifestAFileOrAGivenDigest) {
  Fixture f;
  const std::string external = sha256("elsewhere").str();
  f.replace("{corpus: {path: corpus}}",
            "{corpus: {path: corpus}, one: {path: corpus/a.bin}, "
            "far: {digest: '" +
                external + "'}}");
  const auto sealed = f.seal().value();
  ASSERT_EQ(sealed.data.size(), 3U);
  const auto manifest =
      parse_json(f.store().read(sealed.data[0].manifest.digest).value(), "").value();
  EXPECT_EQ(manifest["files"].size(), 2U);
  EXPECT_EQ(manifest["files"][1]["path"], "sub/b.bin");
  EXPECT_EQ(manifest["files"][1]["size"], 4);
  EXPECT_EQ(manifest["files"][1]["digest"], sha256("bbbb").str());
  EXPECT_EQ(sealed.data[1].digest, external);
  EXPECT_EQ(sealed.data[1].manifest.size, 0U);
  EXPECT_EQ(sealed.data[2].digest, sha256("aaaa").str());
}

TEST(Inputs, APipeIsRefusedAndNotWaitedFor) {
  const std::pair<const char*, const char*> places[] = {
      {"file: train.yaml", "file: pipe"},
      {"{path: corpus}", "{path: pipe}"},
      {"{path: corpus}", "{path: pipes}"},
      {"seeds:", "container: {kind: sqsh, file: pipe}\nseeds:"},
      {"seeds:", "container: {kind: sif, file: pipe}\nseeds:"},
      {"seeds:", "container: {kind: oci-archive, file: pipe}\nseeds:"}};
  for (const auto& [from, to] : places) {
    Fixture f;
    fs::create_directory(f.folder / "pipes");
    for (const char* pipe : {"pipe", "pipes/one"}) {
      ASSERT_EQ(::mkfifo((f.folder / pipe).c_str(), 0600), 0);
    }
    f.replace(from, to);
    const auto sealed = f.seal();
    ASSERT_FALSE(sealed) << to;
    EXPECT_EQ(exit_for(sealed.error().code), Exit::usage) << to;
    EXPECT_THAT(sealed.error().describe(), ::testing::ContainsRegex("not a plain file|not a file"))
        << to;
  }
}

TEST(Inputs, TheOrderInWhichFilesWereMadeDoesNotMatter) {
  const Fixture f;
  const Fixture g;
  for (int i = 0; i < 300; ++i) {
    f.write("corpus/n" + std::to_string(i), std::to_string(i));
    f.repo.write("n" + std::to_string(i), std::to_string(i));
    g.write("corpus/n" + std::to_string(299 - i), std::to_string(299 - i));
    g.repo.write("n" + std::to_string(299 - i), std::to_string(299 - i));
  }
  f.repo.commit();
  g.repo.commit();
  EXPECT_EQ(f.seal()->digest, g.seal()->digest);
}

TEST(Inputs, AnImageOfTooManyPartsIsRefused) {
  Fixture f;
  auto layout = f.store("image");
  const auto layer = layout.add_bytes("l", "application/vnd.oci.image.layer.v1.tar").value();
  const Json part = {
      {"mediaType", layer.media_type}, {"digest", layer.digest.str()}, {"size", layer.size}};
  constexpr char kManifest[] = "application/vnd.oci.image.manifest.v1+json";
  const Json manifest = {{"schemaVersion", 2},
                         {"mediaType", kManifest},
                         {"config", part},
                         {"layers", std::vector<Json>(10'001, part)}};
  const auto stored = layout.add_bytes(manifest.dump(), kManifest).value();
  const Json index = {
      {"schemaVersion", 2},
      {"manifests",
       {{{"mediaType", kManifest}, {"digest", stored.digest.str()}, {"size", stored.size}}}}};
  ASSERT_TRUE(write_file_atomic(layout.root() / "index.json", index.dump()));
  f.replace("seeds:", "container: {kind: oci-layout, file: image}\nseeds:");
  EXPECT_THAT(f.seal().error().describe(), HasSubstr("more than 10000 parts"));
}

}  // namespace
}  // namespace qualify::store
