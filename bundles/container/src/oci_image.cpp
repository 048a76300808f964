#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "qualify/archive/tar.hpp"
#include "qualify/base/json.hpp"
#include "qualify/container/oci.hpp"

namespace qualify::container {

namespace {

constexpr int kDeepest = 4;
constexpr std::size_t kMostDescriptors = 10'000;

const std::set<std::string> kIndexes{"application/vnd.oci.image.index.v1+json",
                                     "application/vnd.docker.distribution.manifest.list.v2+json"};
const std::set<std::string> kManifests{"application/vnd.oci.image.manifest.v1+json",
                                       "application/vnd.docker.distribution.manifest.v2+json"};

struct Named {
  Digest digest;
  std::string media_type;
  std::uint64_t size = 0;
};

class Walk {
 public:
  explicit Walk(const OciLayout& layout) : layout_(layout) {}

  Result<Named> named(const Json& json) {
    try {
      const auto digest = Digest::parse(json.at("digest").get<std::string>());
      if (!digest) return tl::unexpected(digest.error());
      return check({*digest, json.at("mediaType"), json.at("size")});
    } catch (const Json::exception& error) {
      return fail(Errc::invalid_input, std::string("not an OCI descriptor: ") + error.what());
    }
  }

  /// Everything below a manifest or index.
  Result<void> walk(const Named& from, int depth) {
    if (depth > kDeepest) {
      return fail(Errc::invalid_input, "image indexes are nested deeper than 4 levels");
    }
    const bool is_index = kIndexes.contains(from.media_type);
    if (!is_index && !kManifests.contains(from.media_type)) {
      return fail(Errc::invalid_input, "not an image: media type " + from.media_type);
    }
    if (!seen_.insert(from.digest).second) return {};
    auto bytes = layout_.read(from.digest);
    if (!bytes) return tl::unexpected(bytes.error());
    auto json = parse_json(*bytes, "manifest " + from.digest.brief());
    if (!json) return tl::unexpected(json.error());
    try {
      if (is_index) {
        for (const Json& item : json->at("manifests")) {
          auto inner = named(item);
          if (!inner) return tl::unexpected(inner.error());
          if (auto done = walk(*inner, depth + 1); !done) return done;
        }
        return {};
      }
      Json parts = json->at("layers");
      parts.push_back(json->at("config"));
      for (const Json& item : parts) {
        auto part = named(item);
        if (!part) return tl::unexpected(part.error());
        seen_.insert(part->digest);
      }
    } catch (const Json::exception& error) {
      return fail(Errc::invalid_input, std::string("not an OCI manifest: ") + error.what());
    }
    return {};
  }

  [[nodiscard]] std::vector<Digest> seen() const { return {seen_.begin(), seen_.end()}; }

 private:
  Result<Named> check(Named named) {
    if (++count_ > kMostDescriptors) {
      return fail(Errc::invalid_input, "the image has more than 10000 parts");
    }
    const auto size = layout_.blobs().find(named.digest);
    if (size == layout_.blobs().end()) {
      return fail(Errc::integrity, "blob " + named.digest.str() + " is missing");
    }
    if (size->second != named.size) {
      return fail(Errc::integrity, "blob " + named.digest.brief() + " has " +
                                       std::to_string(size->second) + " bytes, the manifest says " +
                                       std::to_string(named.size));
    }
    return named;
  }

  const OciLayout& layout_;
  std::set<Digest> seen_;
  std::size_t count_ = 0;
};

}  // namespace

Result<OciImage> find_image(const OciLayout& layout) {
  auto index = parse_json(layout.index(), "index.json");
  if (!index) return tl::unexpected(index.error());
  if (!index->is_object() || !(*index)["manifests"].is_array()) {
    return fail(Errc::invalid_input, "index.json is not an OCI index");
  }
  const Json& manifests = (*index)["manifests"];
  if (manifests.size() != 1) {
    return fail(Errc::invalid_input,
                "the layout holds " + std::to_string(manifests.size()) + " images, expected one",
                {}, "take one out: skopeo copy oci:LAYOUT:TAG oci:NEW:TAG");
  }
  Walk walk(layout);
  auto top = walk.named(manifests[0]);
  if (!top) return tl::unexpected(top.error());
  if (auto done = walk.walk(*top, 1); !done) return tl::unexpected(done.error());
  return OciImage{top->digest, top->media_type, top->size, walk.seen()};
}

Result<void> write_oci_archive(const OciLayout& layout, const OciImage& image, const Sink& sink) {
  archive::TarWriter tar(sink);
  const auto put = [&](const std::string& name, const std::string& content) -> Result<void> {
    if (auto done = tar.begin_file(name, false, content.size()); !done) return done;
    return tar.write(std::as_bytes(std::span(content)));
  };
  for (const Digest& digest : image.content) {
    const auto size = layout.blobs().at(digest);
    if (auto done = tar.begin_file("blobs/sha256/" + digest.hex(), false, size); !done) return done;
    auto done =
        layout.stream(digest, [&](std::span<const std::byte> piece) { return tar.write(piece); });
    if (!done) return done;
  }
  const Json index = {{"schemaVersion", 2},
                      {"mediaType", "application/vnd.oci.image.index.v1+json"},
                      {"manifests", Json::array({{{"mediaType", image.media_type},
                                                  {"digest", image.manifest.str()},
                                                  {"size", image.size}}})}};
  if (auto done = put("index.json", canonical_bytes(index)); !done) return done;
  if (auto done = put("oci-layout", R"({"imageLayoutVersion":"1.0.0"})"); !done) return done;
  return tar.finish();
}

}  // namespace qualify::container
