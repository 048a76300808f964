#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fixture.hpp"

namespace qualify::store {
namespace {

using ::testing::HasSubstr;

/// An OCI layout with one image of one layer, as image-spec 1.1 describes it.
std::string make_image(const Fixture& f, const std::string& name, const std::string& layer) {
  auto layout = f.store(name);
  const auto content = layout.add_bytes(layer, "application/vnd.oci.image.layer.v1.tar").value();
  const auto config =
      layout.add_bytes("{\"architecture\":\"amd64\"}", "application/vnd.oci.image.config.v1+json")
          .value();
  const auto part = [](const Descriptor& d) {
    return Json{{"mediaType", d.media_type}, {"digest", d.digest.str()}, {"size", d.size}};
  };
  const Json manifest = {{"schemaVersion", 2},
                         {"mediaType", "application/vnd.oci.image.manifest.v1+json"},
                         {"config", part(config)},
                         {"layers", Json::array({part(content)})}};
  const auto stored = layout.add_bytes(manifest.dump(2), manifest["mediaType"]).value();
  Json entry = part(stored);
  entry["annotations"] = {{"org.opencontainers.image.ref.name", "latest"}};
  const Json index = {{"schemaVersion", 2}, {"manifests", Json::array({entry})}};
  EXPECT_TRUE(write_file_atomic(layout.root() / "index.json", index.dump()));
  return stored.digest.str();
}

void use(Fixture& f, const std::string& container) {
  f.replace("seeds:", "container: " + container + "\nseeds:");
}

TEST(OciContainer, ALayoutAndAnArchiveOfOneImageAreOneContent) {
  Fixture layout;
  const std::string digest = make_image(layout, "image", "layer");
  test::run({"tar", "cf", "../image.tar", "."}, layout.folder / "image");
  Fixture archive;
  fs::copy_file(layout.folder / "image.tar", archive.folder / "image.tar");
  use(layout, "{kind: oci-layout, file: image}");
  use(archive, "{kind: oci-archive, file: image.tar}");
  const auto a = layout.seal();
  ASSERT_TRUE(a) << a.error().describe();
  const auto b = archive.seal();
  ASSERT_TRUE(b) << b.error().describe();
  EXPECT_EQ(a->container.reference, digest);
  EXPECT_EQ(a->container.content.digest, b->container.content.digest);
  // What was stored is an archive that others read.
  const auto inspected =
      test::run({"skopeo", "inspect", "--raw",
                 "oci-archive:" + layout.store().path_of(a->container.content.digest).string()});
  EXPECT_THAT(inspected, HasSubstr("image.layer"));
}

TEST(OciContainer, WhatElseLiesInTheLayoutDoesNotMatter) {
  Fixture f;
  make_image(f, "image", "layer");
  use(f, "{kind: oci-layout, file: image}");
  const auto first = f.seal()->digest;
  ASSERT_TRUE(f.store("image").add_bytes("unrelated", "text/plain"));
  EXPECT_EQ(f.seal()->digest, first);
}

TEST(OciContainer, ADamagedOrMissingBlobIsRefused) {
  Fixture f;
  make_image(f, "image", "layer");
  use(f, "{kind: oci-layout, file: image}");
  const fs::path layer = f.store("image").path_of(sha256("layer"));
  fs::permissions(layer, fs::perms::owner_all);
  f.write("image/blobs/sha256/" + sha256("layer").hex(), "lawer");
  EXPECT_EQ(f.seal().error().code, Errc::integrity);
  fs::remove(layer);
  EXPECT_THAT(f.seal().error().describe(), HasSubstr("is missing"));
}

TEST(OciContainer, EndlesslyNestedIndexesEnd) {
  Fixture f;
  auto layout = f.store("image");
  constexpr char kIndex[] = "application/vnd.oci.image.index.v1+json";
  auto inner = layout.add_bytes(R"({"schemaVersion":2,"manifests":[]})", kIndex).value();
  for (int i = 0; i < 8; ++i) {
    const Json index = {
        {"schemaVersion", 2},
        {"manifests",
         Json::array(
             {{{"mediaType", kIndex}, {"digest", inner.digest.str()}, {"size", inner.size}}})}};
    ASSERT_TRUE(write_file_atomic(layout.root() / "index.json", index.dump()));
    inner = layout.add_bytes(index.dump(), kIndex).value();
  }
  use(f, "{kind: oci-layout, file: image}");
  EXPECT_THAT(f.seal().error().describe(), HasSubstr("nested deeper than 4"));
}

}  // namespace
}  // namespace qualify::store
