#include "qualify/store/transfer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "config_json.hpp"
#include "index.hpp"
#include "load.hpp"
#include "media_types.hpp"
#include "qualify/archive/tar.hpp"
#include "qualify/container/oci.hpp"

namespace qualify::store {

namespace {

namespace fs = std::filesystem;

/// Blob -> size: manifest, config and layers.
std::map<Digest, std::uint64_t> blobs_of(const Loaded& loaded) {
  std::map<Digest, std::uint64_t> blobs;
  blobs[loaded.bundle.digest] = loaded.manifest_size;
  blobs[loaded.config.digest] = loaded.config.size;
  for (const Descriptor& layer : layers_of(loaded.bundle)) blobs[layer.digest] = layer.size;
  return blobs;
}

Unexpected other_size(const fs::path& blob) {
  return fail(Errc::integrity, "a blob is missing or has another size", blob.string(),
              "qualify bundle verify");
}

Result<void> write_archive(const BlobStore& store, const Loaded& loaded, const Sink& sink) {
  archive::TarWriter tar(sink);
  const auto put = [&](const std::string& name, const std::string& content) -> Result<void> {
    if (auto done = tar.begin_file(name, false, content.size()); !done) return done;
    return tar.write(std::as_bytes(std::span(content)));
  };
  for (const auto& [digest, size] : blobs_of(loaded)) {
    std::error_code error;
    if (fs::file_size(store.path_of(digest), error) != size || error) {
      return other_size(store.path_of(digest));
    }
    if (auto done = tar.begin_file("blobs/sha256/" + digest.hex(), false, size); !done) return done;
    std::uint64_t left = size;
    const auto copied = store.stream(digest, [&](std::span<const std::byte> piece) -> Result<void> {
      if (piece.size() > left) return other_size(store.path_of(digest));
      left -= piece.size();
      return tar.write(piece);
    });
    if (!copied) return tl::unexpected(copied.error());
    if (left > 0) return other_size(store.path_of(digest));
  }
  const Bundle& bundle = loaded.bundle;
  const Descriptor manifest{kManifestType, bundle.digest, loaded.manifest_size, {}};
  const Index index{{{manifest, ref_name_for(bundle.name, bundle.digest), {}}}, false};
  if (auto done = put("index.json", index_bytes(index)); !done) return done;
  if (auto done = put("oci-layout", kLayoutBytes); !done) return done;
  return tar.finish();
}

/// One of an archive's bundles, once all of it was checked.
struct Found {
  Descriptor manifest;
  std::string name;
};

/// The manifests that an archive's index names, each checked whole.
Result<std::vector<Found>> bundles_in(const container::OciLayout& layout,
                                      const std::string& context) {
  auto index = parse_json(layout.index(), context + ": index.json");
  if (!index) return tl::unexpected(index.error());
  std::vector<Found> bundles;
  std::set<Digest> seen, named;
  try {
    for (const Json& item : index->at("manifests")) {
      auto entry = read_descriptor(item, context);
      if (!entry) return tl::unexpected(entry.error());
      if (!seen.insert(entry->digest).second) continue;  // under another tag
      auto loaded = load_checked(
          entry->digest,
          [&](const Digest& digest) { return layout.read(digest, kLargestManifest); }, context);
      if (!loaded) return tl::unexpected(loaded.error());
      if (loaded->manifest_size != entry->size) {
        return fail(Errc::integrity, "the index gives the manifest another size", context);
      }
      for (const auto& [digest, size] : blobs_of(*loaded)) {
        const auto there = layout.blobs().find(digest);
        if (there == layout.blobs().end() || there->second != size) {
          return fail(Errc::integrity, "blob " + digest.str() + " is missing or has another size",
                      context);
        }
        named.insert(digest);
      }
      bundles.push_back({{kManifestType, entry->digest, entry->size, {}}, loaded->bundle.name});
    }
  } catch (const Json::exception& error) {
    return fail(Errc::invalid_input, std::string("not an OCI index: ") + error.what(), context);
  }
  if (bundles.empty()) return fail(Errc::invalid_input, "it holds no bundle", context);
  for (const auto& [digest, size] : layout.blobs()) {
    if (!named.contains(digest)) {
      return fail(Errc::invalid_input,
                  "it holds blob " + digest.brief() + ", which no bundle names", context,
                  "carry bundles one a file, as qualify bundle export writes them");
    }
  }
  return bundles;
}

}  // namespace

Result<void> export_bundle(const BlobStore& store, const Digest& digest, const fs::path& file) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(file, error))) {
    return fail(Errc::already_exists, "the file is there already", file.string(),
                "name one that does not exist");
  }
  auto loaded = load_checked(store, digest);
  if (!loaded) return tl::unexpected(loaded.error());
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  std::string temporary = (folder / ("." + file.filename().string() + ".XXXXXX")).string();
  const Fd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) return fail_errno(errno, "cannot create a file in", folder.string());
  Result<void> done = write_archive(store, *loaded, [&](std::span<const std::byte> piece) {
    return write_all(fd.get(), piece, file);
  });
  if (done && (::fchmod(fd.get(), 0444) != 0 || ::fsync(fd.get()) != 0)) {
    done = fail_errno(errno, "cannot write", file.string());
  }
  // link, not rename: it never replaces a file that appeared meanwhile.
  if (done && ::link(temporary.c_str(), file.c_str()) != 0) {
    done = fail_errno(errno, "cannot create", file.string());
  }
  ::unlink(temporary.c_str());
  return done ? sync_folder(folder) : done;
}

Result<std::vector<Digest>> import_bundles(BlobStore& store, const fs::path& source) {
  std::error_code error;
  auto layout = fs::is_directory(source, error) ? container::OciLayout::open_folder(source)
                                                : container::OciLayout::open_archive(source);
  if (!layout) return tl::unexpected(layout.error());
  auto bundles = bundles_in(*layout, source.string());
  if (!bundles) return tl::unexpected(bundles.error());
  const auto lock = FileLock::acquire_shared(store.root() / kCollectLock);
  if (!lock) return tl::unexpected(lock.error());
  for (const auto& [digest, size] : layout->blobs()) {
    if (store.has(digest) && store.verify(digest)) {
      store.touch(digest);
      continue;
    }
    auto writer = store.begin();
    if (!writer) return tl::unexpected(writer.error());
    auto copied = layout->stream(
        digest, [&](std::span<const std::byte> piece) { return writer->write(piece); });
    if (!copied) return tl::unexpected(copied.error());
    if (auto stored = writer->commit({}); !stored) return tl::unexpected(stored.error());
  }
  // Beyond this point all of it is in the store; now it becomes visible.
  std::vector<Digest> digests;
  for (const Found& bundle : *bundles) {
    const Digest& digest = bundle.manifest.digest;
    auto index = read_index(store);
    if (!index) return tl::unexpected(index.error());
    if (index->find(digest) == nullptr) {
      auto added = add_to_index(store, {bundle.manifest, ref_name_for(bundle.name, digest), {}});
      if (!added) return tl::unexpected(added.error());
    }
    digests.push_back(digest);
  }
  return digests;
}

}  // namespace qualify::store
