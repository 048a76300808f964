#include "inputs.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "copy.hpp"
#include "media_types.hpp"
#include "parallel.hpp"
#include "qualify/archive/names.hpp"
#include "qualify/container/image.hpp"
#include "qualify/container/oci.hpp"
#include "qualify/git/tree.hpp"
#include "qualify/spec/credentials.hpp"

namespace qualify::store {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestConfig = 16U << 20U;

/// Before it is opened: a pipe would wait for its writer.
Result<void> plain_file(const fs::path& file) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (error) return fail_errno(error.value(), "cannot open", file.string());
  if (fs::is_regular_file(status)) return {};
  return fail(Errc::invalid_input, "not a plain file", file.string());
}

Unexpected changed(const fs::path& file) {
  return fail(Errc::integrity, "the file changed while it was read", file.string(),
              "wait until nothing writes to it, then try again");
}

}  // namespace

// ---- code -------------------------------------------------------------------------------------

Result<SealedCode> seal_code(const spec::CodeInput& input, SealContext& context) {
  auto tree = git::Tree::open(input.repository, input.revision, {context.allow_dirty});
  if (!tree) return tl::unexpected(tree.error());
  SealedCode sealed{input.name, tree->commit(), input.revision, {}};
  if (tree->dirty()) context.dirty = true;
  const Digest key = tree->key();
  if (const auto known = context.cache.find_tree(key)) {
    sealed.archive = {kCodeType, known->digest, known->size, {}};
  } else {
    auto writer = context.store.begin();
    if (!writer) return tl::unexpected(writer.error());
    auto done =
        tree->write_archive([&](std::span<const std::byte> piece) { return writer->write(piece); });
    if (!done) return tl::unexpected(done.error());
    auto archive = writer->commit(kCodeType);
    if (!archive) return tl::unexpected(archive.error());
    sealed.archive = *archive;
    context.cache.remember_tree(key, {archive->digest, archive->size});
  }
  sealed.archive.title = "code/" + input.name + ".tar";
  return sealed;
}

namespace {

Result<void> check_config(const std::string& bytes, const spec::ConfigInput& input) {
  const std::string extension = input.file.extension().string();
  const std::string context = input.file.string();
  if (const auto found = spec::credential_in_text(bytes)) {
    return fail(Errc::refused, "a line looks like a credential: " + found->why,
                context + ":" + std::to_string(found->line),
                "take it out of the file and pass it at launch through the environment");
  }
  if (!input.check) return {};
  Result<void> good;
  if (extension == ".json") {
    if (auto parsed = parse_json(bytes, context); !parsed) good = tl::unexpected(parsed.error());
  } else if (extension == ".yaml" || extension == ".yml") {
    if (auto parsed = spec::parse_yaml(bytes, context); !parsed) {
      good = tl::unexpected(parsed.error());
    }
  }
  if (!good && good.error().hint.empty()) {
    good.error().hint = "'check: false' seals the file's bytes without looking at them";
  }
  return good;
}

}  // namespace

Result<SealedConfig> seal_config(const spec::ConfigInput& input, SealContext& context) {
  const std::string file_name = input.file.filename().string();
  SealedConfig sealed{input.name, file_name, {kFileType, {}, 0, {}}};
  // Checked and unchecked are different readings of one file.
  const char* const purpose = input.check ? "config" : "unchecked config";
  const auto before = StatCache::Stamp::of({input.file});
  if (const auto known = context.cache.find(purpose, input.file, before, true)) {
    sealed.content.digest = known->digest;
    sealed.content.size = known->size;
  } else {
    if (auto good = plain_file(input.file); !good) return tl::unexpected(good.error());
    auto bytes = read_file(input.file, kLargestConfig);
    if (!bytes) return tl::unexpected(bytes.error());
    if (auto good = check_config(*bytes, input); !good) return tl::unexpected(good.error());
    if (before != StatCache::Stamp::of({input.file})) return changed(input.file);
    auto content = context.store.add_bytes(*bytes, kFileType);
    if (!content) return tl::unexpected(content.error());
    context.cache.remember(purpose, input.file, before, {content->digest, content->size}, true);
    sealed.content = *content;
  }
  sealed.content.title = "config/" + input.name + "/" + file_name;
  return sealed;
}

// ---- container ------------------------------------------------------------------------------

namespace {

/// The image file in the store, as it is; not read again when it and its blob are as they were.
Result<SealedContainer> seal_file(const spec::ContainerInput& input, const char* type,
                                  Result<void> (*check)(const fs::path&), SealContext& context) {
  // Not the file's name: the same image under another name is the same input.
  const std::string kind = spec::name_of(input.kind);
  SealedContainer sealed{input.kind, {type, {}, 0, "container." + kind}, {}};
  const auto before = StatCache::Stamp::of({input.file});
  if (const auto known = context.cache.find(kind, input.file, before, true)) {
    sealed.content.digest = known->digest;
    sealed.content.size = known->size;
    return sealed;
  }
  if (auto good = plain_file(input.file); !good) return tl::unexpected(good.error());
  if (auto good = check(input.file); !good) return tl::unexpected(good.error());
  auto content = context.store.add_file(input.file, type);
  if (!content) return tl::unexpected(content.error());
  if (before != StatCache::Stamp::of({input.file})) return changed(input.file);
  context.cache.remember(kind, input.file, before, {content->digest, content->size}, true);
  sealed.content.digest = content->digest;
  sealed.content.size = content->size;
  return sealed;
}

/// Every file of an image that is a folder; of one that is a file, that.
std::vector<fs::path> files_of(const spec::ContainerInput& input) {
  if (input.kind != spec::ContainerKind::oci_layout) return {input.file};
  std::vector<fs::path> files{input.file / "oci-layout", input.file / "index.json"};
  std::error_code error;
  for (fs::directory_iterator it(input.file / "blobs" / "sha256", error), end; !error && it != end;
       it.increment(error)) {
    files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Both forms become the same archive of the image alone: equal images are equal inputs.
Result<SealedContainer> seal_oci(const spec::ContainerInput& input, SealContext& context) {
  const bool folder = input.kind == spec::ContainerKind::oci_layout;
  const char* const purpose = folder ? "layout" : "archive";
  const auto before = StatCache::Stamp::of(files_of(input));
  SealedContainer sealed{input.kind, {kOciArchiveType, {}, 0, "container.oci.tar"}, {}};
  if (const auto known = context.cache.find(purpose, input.file, before, true)) {
    sealed.content.digest = known->digest;
    sealed.content.size = known->size;
    sealed.reference = known->note.str();
    return sealed;
  }
  if (!folder) {
    if (auto good = plain_file(input.file); !good) return tl::unexpected(good.error());
  }
  auto layout = folder ? container::OciLayout::open_folder(input.file)
                       : container::OciLayout::open_archive(input.file);
  if (!layout) return tl::unexpected(layout.error());
  auto image = container::find_image(*layout);
  if (!image) {
    image.error().context = input.file.string();
    return tl::unexpected(image.error());
  }
  auto writer = context.store.begin();
  if (!writer) return tl::unexpected(writer.error());
  auto done = container::write_oci_archive(
      *layout, *image, [&](std::span<const std::byte> piece) { return writer->write(piece); });
  if (!done) return tl::unexpected(done.error());
  if (before.valid() && before != StatCache::Stamp::of(files_of(input))) return changed(input.file);
  auto content = writer->commit(kOciArchiveType);
  if (!content) return tl::unexpected(content.error());
  sealed.content.digest = content->digest;
  sealed.content.size = content->size;
  sealed.reference = image->manifest.str();
  context.cache.remember(purpose, input.file, before,
                         {content->digest, content->size, image->manifest}, true);
  return sealed;
}

}  // namespace

Result<SealedContainer> seal_container(const spec::ContainerInput& input, SealContext& context) {
  switch (input.kind) {
    case spec::ContainerKind::none:
    case spec::ContainerKind::reference:
      break;
    case spec::ContainerKind::sqsh:
      return seal_file(input, kSquashfsType, container::check_squashfs, context);
    case spec::ContainerKind::sif:
      return seal_file(input, kSifType, container::check_sif, context);
    case spec::ContainerKind::oci_layout:
    case spec::ContainerKind::oci_archive:
      return seal_oci(input, context);
  }
  return SealedContainer{input.kind, {}, input.reference};
}

// ---- data -----------------------------------------------------------------------------------

namespace {

/// The file's digest, not read again when it is as it was. A change while it is read is an error.
Result<HashedFile> hash_input(const fs::path& file, SealContext& context) {
  const auto before = StatCache::Stamp::of({file});
  if (const auto known = context.cache.find("data", file, before, false)) {
    return HashedFile{known->digest, known->size};
  }
  if (auto good = plain_file(file); !good) return tl::unexpected(good.error());
  auto fd = open_read(file);
  if (!fd) return tl::unexpected(fd.error());
  auto hashed = hash_stream(fd->get(), file);
  if (!hashed) return hashed;
  if (before != StatCache::Stamp::of({file})) return changed(file);
  context.cache.remember("data", file, before, {hashed->digest, hashed->size}, false);
  return hashed;
}

/// Names below the folder, in byte order.
Result<std::vector<std::string>> files_below(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code error;
  const std::size_t base = (folder / "").native().size();
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code status_error;
    if (fs::is_directory(it->symlink_status(status_error))) continue;
    // Links are read through: data sets are often folders of links to shared files.
    if (!fs::is_regular_file(it->status(status_error))) {
      return fail(Errc::invalid_input, "data holds something that is not a file",
                  archive::printable(it->path().string()));
    }
    std::string name = it->path().native().substr(base);
    if (!canonical_json(Json(name))) {
      return fail(Errc::invalid_input, "a file name is not UTF-8",
                  archive::printable(it->path().string()), "rename it");
    }
    files.push_back(std::move(name));
  }
  if (error) return fail_errno(error.value(), "cannot read folder", folder.string());
  std::sort(files.begin(), files.end());
  return files;
}

/// The folder's files as {"files":[{"path","size","digest"}…],"schema_version":1}, canonical, in
/// byte order of their paths; written piece by piece, as there may be very many.
Result<Descriptor> folder_manifest(const fs::path& folder, SealContext& context) {
  const auto names = files_below(folder);
  if (!names) return tl::unexpected(names.error());
  std::vector<Result<HashedFile>> hashed(names->size());
  for_each_index(names->size(), context.jobs_a_folder,
                 [&](std::size_t i) { hashed[i] = hash_input(folder / (*names)[i], context); });
  auto writer = context.store.begin();
  if (!writer) return tl::unexpected(writer.error());
  const auto put = [&](std::string_view text) {
    return writer->write(std::as_bytes(std::span(text)));
  };
  if (auto done = put("{\"files\":["); !done) return tl::unexpected(done.error());
  for (std::size_t i = 0; i < hashed.size(); ++i) {
    if (!hashed[i]) return tl::unexpected(hashed[i].error());
    const Json item = {
        {"path", (*names)[i]}, {"size", hashed[i]->size}, {"digest", hashed[i]->digest.str()}};
    if (auto done = put((i == 0 ? "" : ",") + canonical_bytes(item)); !done) {
      return tl::unexpected(done.error());
    }
  }
  if (auto done = put("],\"schema_version\":1}"); !done) return tl::unexpected(done.error());
  return writer->commit(kDataType);
}

}  // namespace

Result<SealedData> seal_data(const spec::DataInput& input, SealContext& context) {
  SealedData sealed{input.name, input.digest, {}, {}};
  if (!input.path) return sealed;
  sealed.path = input.path->string();
  std::error_code error;
  std::string digest;
  if (fs::is_directory(*input.path, error)) {
    auto blob = folder_manifest(*input.path, context);
    if (!blob) return tl::unexpected(blob.error());
    blob->title = "data/" + input.name + ".json";
    sealed.manifest = *blob;
    digest = blob->digest.str();
  } else {
    auto hashed = hash_input(*input.path, context);
    if (!hashed) return tl::unexpected(hashed.error());
    digest = hashed->digest.str();
  }
  if (!input.digest.empty() && input.digest != digest) {
    return fail(Errc::refused, "data '" + input.name + "' has the digest " + digest,
                input.path->string(), "the spec says " + input.digest);
  }
  sealed.digest = digest;
  return sealed;
}

}  // namespace qualify::store
