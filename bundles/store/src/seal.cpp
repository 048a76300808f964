#include <nlohmann/json.hpp>

#include "bundle_json.hpp"
#include "index.hpp"
#include "layout.hpp"
#include "qualify/base/files.hpp"
#include "qualify/git/tree.hpp"
#include "qualify/spec/credentials.hpp"
#include "qualify/store/blob_writer.hpp"

namespace qualify::store {

namespace {

constexpr std::uint64_t kLargestConfig = 16ULL << 20U;

std::string place(const spec::BundleSpec& spec, const spec::Mark& mark) {
  return spec.file.string() + ":" + std::to_string(mark.line) + ":" + std::to_string(mark.column);
}

Unexpected secret(const std::string& where, const std::string& why) {
  return fail(Errc::refused, why, where,
              "keep it out of the bundle: list its variable in passed_environment");
}

Result<void> refuse_credentials(const spec::BundleSpec& spec) {
  const auto check = [&](const std::map<std::string, std::string>& variables,
                         const std::string& where) -> Result<void> {
    for (const auto& [name, value] : variables) {
      if (auto why = spec::credential_in(name, value)) {
        return secret(where, "environment variable " + name + ": " + *why);
      }
    }
    return {};
  };
  if (auto good = check(spec.environment, spec.file.string()); !good) return good;
  for (const spec::Arm& arm : spec.arms) {
    if (auto good = check(arm.environment, place(spec, arm.mark)); !good) return good;
    for (const std::string& word : arm.arguments) {
      if (auto why = spec::credential_in(word)) return secret(place(spec, arm.mark), *why);
    }
  }
  for (const std::string& word : spec.launch.argv) {
    if (auto why = spec::credential_in(word)) return secret(spec.file.string(), *why);
  }
  return {};
}

Result<SealedCode> seal_code(const spec::BundleSpec& spec, const spec::CodeInput& input,
                             BlobStore& store, const SealOptions& options, bool& dirty) {
  const auto tree = git::Tree::open(input.repository, input.revision, {options.allow_dirty});
  if (!tree) {
    Error error = tree.error();
    if (error.context.empty()) error.context = place(spec, input.mark);
    return Unexpected(std::move(error));
  }
  dirty = dirty || tree->dirty();
  auto writer = BlobWriter::begin(store);
  if (!writer) return tl::unexpected(writer.error());
  if (auto done = tree->write_archive(
          [&](std::span<const std::byte> piece) { return writer->write(piece); });
      !done) {
    return tl::unexpected(done.error());
  }
  auto archive = writer->commit(kCodeType);
  if (!archive) return tl::unexpected(archive.error());
  archive->title = "code/" + input.name + ".tar";
  return SealedCode{input.name, tree->commit(), input.revision, std::move(*archive)};
}

Result<SealedConfig> seal_config(const spec::BundleSpec& spec, const spec::ConfigInput& input,
                                 BlobStore& store) {
  const auto content = read_file(input.file, kLargestConfig);
  if (!content) {
    Error error = content.error();
    error.context = place(spec, input.mark) + ": " + input.file.string();
    return Unexpected(std::move(error));
  }
  if (auto line = spec::credential_in_text(*content)) {
    return secret(input.file.string() + ":" + std::to_string(line->line), line->why);
  }
  const std::string extension = input.file.extension().string();
  if (input.check && (extension == ".yaml" || extension == ".yml")) {
    if (auto parsed = spec::parse_yaml(*content, input.file.string()); !parsed) {
      return tl::unexpected(parsed.error());
    }
  }
  if (input.check && extension == ".json") {
    if (auto parsed = parse_json(*content, input.file.string()); !parsed) {
      return tl::unexpected(parsed.error());
    }
  }
  auto stored = store.add_bytes(*content, kFileType);
  if (!stored) return tl::unexpected(stored.error());
  const std::string file_name = input.file.filename().string();
  stored->title = "config/" + input.name + "/" + file_name;
  return SealedConfig{input.name, file_name, std::move(*stored)};
}

Result<SealedContainer> seal_container(const spec::BundleSpec& spec, BlobStore& store) {
  const spec::ContainerInput& input = spec.container;
  SealedContainer sealed{input.kind, {}, input.reference};
  switch (input.kind) {
    case spec::ContainerKind::none:
    case spec::ContainerKind::reference:
      return sealed;
    case spec::ContainerKind::oci_layout:
      return fail(Errc::unsupported, "an OCI layout folder cannot be sealed as it is",
                  place(spec, input.mark),
                  "make one file of it: skopeo copy oci:DIR oci-archive:FILE, kind: oci-archive");
    case spec::ContainerKind::sqsh:
    case spec::ContainerKind::sif:
    case spec::ContainerKind::oci_archive:
      break;
  }
  auto stored = store.add_file(input.file, kContainerType);
  if (!stored) {
    Error error = stored.error();
    error.context = place(spec, input.mark) + ": " + input.file.string();
    return Unexpected(std::move(error));
  }
  stored->title = "container/" + input.file.filename().string();
  sealed.content = std::move(*stored);
  return sealed;
}

/// SHA-256 over the canonical list of (path, size, SHA-256) of every file, in path order.
Result<std::string> digest_of_data(const fs::path& path) {
  Json files = Json::array();
  std::vector<fs::path> paths;
  std::error_code error;
  if (fs::is_regular_file(path, error)) {
    paths.push_back(path);
  } else {
    for (fs::recursive_directory_iterator it(path, error), end; !error && it != end;
         it.increment(error)) {
      if (it->is_regular_file()) paths.push_back(it->path());
    }
    if (error) return fail_errno(error.value(), "cannot list", path.string());
  }
  std::sort(paths.begin(), paths.end());
  for (const fs::path& file : paths) {
    const auto hashed = hash_file(file);
    if (!hashed) return tl::unexpected(hashed.error());
    const std::string name = file == path ? file.filename() : file.lexically_relative(path);
    files.push_back({{"path", name}, {"size", hashed->size}, {"digest", hashed->digest.str()}});
  }
  const auto bytes = canonical_json(files);
  if (!bytes) return tl::unexpected(bytes.error());
  return sha256(*bytes).str();
}

Result<SealedData> seal_data(const spec::BundleSpec& spec, const spec::DataInput& input) {
  SealedData sealed{input.name, input.digest, {}};
  if (!input.path) return sealed;
  sealed.path = input.path->string();
  const auto digest = digest_of_data(*input.path);
  if (!digest) return tl::unexpected(digest.error());
  if (!input.digest.empty() && input.digest != *digest) {
    return fail(
        Errc::integrity,
        "data '" + input.name + "' has digest " + *digest + ", the spec says " + input.digest,
        place(spec, input.mark));
  }
  sealed.digest = *digest;
  return sealed;
}

}  // namespace

Result<Bundle> seal(const spec::BundleSpec& spec, BlobStore& store, const SealOptions& options) {
  if (auto clean = refuse_credentials(spec); !clean) return tl::unexpected(clean.error());
  Bundle bundle;
  bundle.name = spec.name;
  bundle.recipe = spec.recipe;
  bundle.model = spec.model;
  bundle.environment = spec.environment;
  bundle.passed_environment = spec.passed_environment;
  bundle.required_environment = spec.required_environment;
  bundle.arms = spec.arms;
  bundle.topology = spec.topology;
  bundle.seeds = spec.seeds;
  bundle.launch = spec.launch;
  bundle.outputs = spec.outputs;
  for (const spec::CodeInput& input : spec.code) {
    auto sealed = seal_code(spec, input, store, options, bundle.dirty);
    if (!sealed) return tl::unexpected(sealed.error());
    bundle.code.push_back(std::move(*sealed));
  }
  for (const spec::ConfigInput& input : spec.configs) {
    auto sealed = seal_config(spec, input, store);
    if (!sealed) return tl::unexpected(sealed.error());
    bundle.configs.push_back(std::move(*sealed));
  }
  auto container = seal_container(spec, store);
  if (!container) return tl::unexpected(container.error());
  bundle.container = std::move(*container);
  for (const spec::DataInput& input : spec.data) {
    auto sealed = seal_data(spec, input);
    if (!sealed) return tl::unexpected(sealed.error());
    bundle.data.push_back(std::move(*sealed));
  }

  // Beyond this point nothing outside the store is read.
  const auto config_bytes = canonical_json(config_json(bundle));
  if (!config_bytes) return tl::unexpected(config_bytes.error());
  const auto config = store.add_bytes(*config_bytes, kConfigType);
  if (!config) return tl::unexpected(config.error());
  const auto manifest =
      store.add_bytes(canonical_bytes(manifest_json(bundle, *config)), kManifestType);
  if (!manifest) return tl::unexpected(manifest.error());
  bundle.digest = manifest->digest;
  if (auto indexed = add_to_index(store, *manifest, bundle.name); !indexed) {
    return tl::unexpected(indexed.error());
  }
  return bundle;
}

}  // namespace qualify::store
