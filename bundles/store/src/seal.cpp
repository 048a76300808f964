#include <algorithm>
#include <nlohmann/json.hpp>

#include "config_json.hpp"
#include "index.hpp"
#include "media_types.hpp"
#include "qualify/container/image.hpp"
#include "qualify/container/oci.hpp"
#include "qualify/git/tree.hpp"
#include "qualify/spec/credentials.hpp"
#include "qualify/store/bundle.hpp"

namespace qualify::store {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestConfig = 16U << 20U;
constexpr char kLaunchHint[] =
    "list its name under 'passed_environment': it is then passed at launch and never recorded";

Error credential(const std::string& what, const std::string& why, const std::string& context) {
  return {Errc::refused, what + " looks like a credential: " + why, context, kLaunchHint, {}};
}

/// Everything in the spec itself that looks like a credential.
std::vector<Error> credentials_in(const spec::BundleSpec& spec) {
  std::vector<Error> faults;
  const std::string file = spec.file.string();
  const auto check_environment = [&](const std::map<std::string, std::string>& environment,
                                     const std::string& where) {
    for (const auto& [name, value] : environment) {
      if (auto why = spec::credential_in(name, value)) {
        faults.push_back(credential(where + " '" + name + "'", *why, file));
      }
    }
  };
  const auto check_arguments = [&](const std::vector<std::string>& arguments,
                                   const std::string& where) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::string& argument = arguments[i];
      auto why = spec::credential_in(argument);
      if (!why && argument.starts_with("--")) {
        const std::size_t equals = argument.find('=');
        if (equals != std::string::npos) {
          why = spec::credential_in(argument.substr(2, equals - 2), argument.substr(equals + 1));
        } else if (i + 1 < arguments.size() && !arguments[i + 1].starts_with("--")) {
          why = spec::credential_in(argument.substr(2), arguments[i + 1]);
        }
      }
      if (why)
        faults.push_back(
            credential("argument " + std::to_string(i + 1) + " of " + where, *why, file));
    }
  };
  check_environment(spec.environment, "environment variable");
  check_environment(spec.required_environment, "required environment variable");
  check_arguments(spec.launch.argv, "the launch");
  for (const spec::Arm& arm : spec.arms) {
    check_environment(arm.environment, "environment variable of arm '" + arm.name + "'");
    check_arguments(arm.arguments, "arm '" + arm.name + "'");
  }
  return faults;
}

/// An input that fails says where the spec names it.
Unexpected named_in(const spec::BundleSpec& spec, const spec::Mark& mark, Error error) {
  const std::string place = "named in " + spec.file.string() + ":" + std::to_string(mark.line) +
                            ":" + std::to_string(mark.column);
  error.hint += (error.hint.empty() ? "" : "; ") + place;
  return Unexpected(std::move(error));
}

Unexpected all(std::vector<Error> faults) {
  Error first = std::move(faults.front());
  for (std::size_t i = 1; i < faults.size(); ++i) first.others.push_back(std::move(faults[i]));
  return Unexpected(std::move(first));
}

Result<SealedCode> seal_code(const spec::CodeInput& input, BlobStore& store,
                             const SealOptions& options, bool& dirty) {
  auto tree = git::Tree::open(input.repository, input.revision, {options.allow_dirty});
  if (!tree) return tl::unexpected(tree.error());
  auto writer = store.begin();
  if (!writer) return tl::unexpected(writer.error());
  auto done =
      tree->write_archive([&](std::span<const std::byte> piece) { return writer->write(piece); });
  if (!done) return tl::unexpected(done.error());
  auto archive = writer->commit(kCodeType);
  if (!archive) return tl::unexpected(archive.error());
  archive->title = "code/" + input.name + ".tar";
  dirty = dirty || tree->dirty();
  return SealedCode{input.name, tree->commit(), input.revision, *archive};
}

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

Result<SealedConfig> seal_config(const spec::ConfigInput& input, BlobStore& store) {
  auto bytes = read_file(input.file, kLargestConfig);
  if (!bytes) return tl::unexpected(bytes.error());
  if (auto good = check_config(*bytes, input); !good) return tl::unexpected(good.error());
  auto content = store.add_bytes(*bytes, kFileType);
  if (!content) return tl::unexpected(content.error());
  content->title = "config/" + input.name + "/" + input.file.filename().string();
  return SealedConfig{input.name, input.file.filename().string(), *content};
}

/// Both forms become the same archive of the image alone: equal images are equal inputs.
Result<SealedContainer> seal_oci(const spec::ContainerInput& input, BlobStore& store) {
  auto layout = input.kind == spec::ContainerKind::oci_layout
                    ? container::OciLayout::open_folder(input.file)
                    : container::OciLayout::open_archive(input.file);
  if (!layout) return tl::unexpected(layout.error());
  auto image = container::find_image(*layout);
  if (!image) {
    image.error().context = input.file.string();
    return tl::unexpected(image.error());
  }
  auto writer = store.begin();
  if (!writer) return tl::unexpected(writer.error());
  auto done = container::write_oci_archive(
      *layout, *image, [&](std::span<const std::byte> piece) { return writer->write(piece); });
  if (!done) return tl::unexpected(done.error());
  auto content = writer->commit(kOciArchiveType);
  if (!content) return tl::unexpected(content.error());
  content->title = "container.oci.tar";
  return SealedContainer{input.kind, *content, image->manifest.str()};
}

Result<SealedContainer> seal_container(const spec::ContainerInput& input, BlobStore& store) {
  SealedContainer sealed{input.kind, {}, input.reference};
  const char* type = nullptr;
  Result<void> good;
  switch (input.kind) {
    case spec::ContainerKind::none:
    case spec::ContainerKind::reference:
      return sealed;
    case spec::ContainerKind::sqsh:
      type = kSquashfsType;
      good = container::check_squashfs(input.file);
      break;
    case spec::ContainerKind::sif:
      type = kSifType;
      good = container::check_sif(input.file);
      break;
    case spec::ContainerKind::oci_layout:
    case spec::ContainerKind::oci_archive:
      return seal_oci(input, store);
  }
  if (!good) return tl::unexpected(good.error());
  auto content = store.add_file(input.file, type);
  if (!content) return tl::unexpected(content.error());
  // Not the file's name: the same image under another name is the same input.
  content->title = std::string("container.") + spec::name_of(input.kind);
  sealed.content = *content;
  return sealed;
}

/// {"files":[{"path","size","digest"}…],"schema_version":1}, paths in byte order.
Result<std::string> folder_manifest(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const fs::file_status status = it->symlink_status(error);
    if (fs::is_directory(status)) continue;
    // Links are read through: data sets are often folders of links to shared files.
    if (!fs::is_regular_file(it->status(error))) {
      return fail(Errc::invalid_input, "data holds something that is not a file",
                  it->path().string());
    }
    files.push_back(it->path());
  }
  if (error) return fail_errno(error.value(), "cannot read folder", folder.string());
  Json list = Json::array();
  std::vector<std::pair<std::string, fs::path>> sorted;
  for (const fs::path& file : files) {
    sorted.emplace_back(file.lexically_relative(folder).generic_string(), file);
  }
  std::sort(sorted.begin(), sorted.end());
  for (const auto& [name, file] : sorted) {
    auto hashed = hash_file(file);
    if (!hashed) return tl::unexpected(hashed.error());
    list.push_back({{"path", name}, {"size", hashed->size}, {"digest", hashed->digest.str()}});
  }
  return canonical_json({{"schema_version", 1}, {"files", std::move(list)}});
}

Result<SealedData> seal_data(const spec::DataInput& input, BlobStore& store) {
  SealedData sealed{input.name, input.digest, {}, {}};
  if (!input.path) return sealed;
  sealed.path = input.path->string();
  std::error_code error;
  std::string digest;
  if (fs::is_directory(*input.path, error)) {
    auto manifest = folder_manifest(*input.path);
    if (!manifest) return tl::unexpected(manifest.error());
    auto blob = store.add_bytes(*manifest, kDataType);
    if (!blob) return tl::unexpected(blob.error());
    blob->title = "data/" + input.name + ".json";
    sealed.manifest = *blob;
    digest = blob->digest.str();
  } else {
    auto hashed = hash_file(*input.path);
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

/// Order in the file means nothing for named inputs.
template <class Item>
void sort_by_name(std::vector<Item>& items) {
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return a.name < b.name; });
}

Result<void> seal_inputs(const spec::BundleSpec& spec, BlobStore& store, const SealOptions& options,
                         Bundle& bundle) {
  for (const spec::CodeInput& input : spec.code) {
    auto sealed = seal_code(input, store, options, bundle.dirty);
    if (!sealed) return named_in(spec, input.mark, sealed.error());
    bundle.code.push_back(std::move(*sealed));
  }
  for (const spec::ConfigInput& input : spec.configs) {
    auto sealed = seal_config(input, store);
    if (!sealed) return named_in(spec, input.mark, sealed.error());
    bundle.configs.push_back(std::move(*sealed));
  }
  auto container = seal_container(spec.container, store);
  if (!container) return named_in(spec, spec.container.mark, container.error());
  bundle.container = std::move(*container);
  for (const spec::DataInput& input : spec.data) {
    auto sealed = seal_data(input, store);
    if (!sealed) return named_in(spec, input.mark, sealed.error());
    bundle.data.push_back(std::move(*sealed));
  }
  sort_by_name(bundle.code);
  sort_by_name(bundle.configs);
  sort_by_name(bundle.data);
  return {};
}

}  // namespace

Result<Bundle> seal(const spec::BundleSpec& spec, BlobStore& store, const SealOptions& options) {
  if (auto faults = credentials_in(spec); !faults.empty()) return all(std::move(faults));
  const auto lock = FileLock::acquire_shared(store.root() / kCollectLock);
  if (!lock) return tl::unexpected(lock.error());
  Bundle bundle;
  bundle.name = spec.name;
  bundle.recipe = spec.recipe;
  bundle.model = spec.model;
  bundle.environment = spec.environment;
  bundle.passed_environment = spec.passed_environment;
  std::sort(bundle.passed_environment.begin(), bundle.passed_environment.end());
  bundle.required_environment = spec.required_environment;
  bundle.arms = spec.arms;
  bundle.topology = spec.topology;
  bundle.seeds = spec.seeds;
  bundle.launch = spec.launch;
  bundle.outputs = spec.outputs;
  if (auto done = seal_inputs(spec, store, options, bundle); !done) {
    return tl::unexpected(done.error());
  }
  // Beyond this point the inputs are frozen.
  auto bytes = canonical_json(to_json(bundle));
  if (!bytes) return tl::unexpected(bytes.error());
  auto config = store.add_bytes(*bytes, kConfigType);
  if (!config) return tl::unexpected(config.error());
  auto manifest = store.add_bytes(canonical_bytes(manifest_json(bundle, *config)), kManifestType);
  if (!manifest) return tl::unexpected(manifest.error());
  bundle.digest = manifest->digest;
  IndexEntry entry{*manifest, ref_name_for(bundle.name, bundle.digest), {}};
  for (const SealedData& data : bundle.data) {
    if (!data.path.empty()) entry.data_paths.emplace(data.name, data.path);
  }
  if (auto done = add_to_index(store, entry); !done) return tl::unexpected(done.error());
  return bundle;
}

}  // namespace qualify::store
