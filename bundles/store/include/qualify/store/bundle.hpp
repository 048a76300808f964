#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "qualify/base/json.hpp"
#include "qualify/spec/bundle_spec.hpp"
#include "qualify/store/blob_store.hpp"

namespace qualify::store {

/// One sealed code tree.
struct SealedCode {
  std::string name;
  std::string commit;    ///< 40 hex, resolved at sealing
  std::string revision;  ///< as written in the spec
  Descriptor archive;    ///< normalised tar
};
struct SealedConfig {
  std::string name;
  std::string file_name;
  Descriptor content;
};
struct SealedContainer {
  spec::ContainerKind kind = spec::ContainerKind::none;
  Descriptor content;     ///< for stored kinds
  std::string reference;  ///< for kind reference; for OCI content "sha256:…" of its manifest
};
struct SealedData {
  std::string name;
  std::string digest;   ///< of the file or of the folder's manifest, or as given
  Descriptor manifest;  ///< paths, sizes and digests of a folder's files; size 0 = none
  std::string path;  ///< where it was on the sealing machine; empty when only a digest was given.
                     ///< A hint in the index, not part of the bundle's identity.
};

/// A sealed bundle as its config blob describes it. Immutable; equal digests = equal content.
struct Bundle {
  Digest digest;  ///< of the OCI manifest: the bundle's name
  std::string name;
  spec::RecipeClass recipe = spec::RecipeClass::debug;
  std::string model;
  bool dirty = false;  ///< sealed with --allow-dirty: barred from certificates
  std::vector<SealedCode> code;
  std::vector<SealedConfig> configs;
  SealedContainer container;
  std::map<std::string, std::string> environment;
  std::vector<std::string> passed_environment;
  std::map<std::string, std::string> required_environment;
  std::vector<spec::Arm> arms;
  std::vector<SealedData> data;
  spec::Topology topology;
  std::vector<std::int64_t> seeds;
  spec::Launch launch;
  std::vector<spec::Output> outputs;

  [[nodiscard]] const spec::Arm* arm(const std::string& arm_name) const;
};

struct SealOptions {
  bool allow_dirty = false;
  unsigned jobs = 0;  ///< inputs read at once, 16 at most; 0 = one a processor
  /// An input file that changed less than this before the seal is read again the next time,
  /// whatever its times say then.
  std::chrono::nanoseconds settle = std::chrono::seconds(2);
};

/// Freezes a spec into the store: code from git, configs, container, one manifest, one index entry.
/// Inputs are read in parallel, and the faults of all of them are reported. An input that did not
/// change since its last seal into this store is not read again (device, inode, size, mtime,
/// ctime). On error the store is as it was but for unreferenced blobs. Errors: those of the inputs,
/// refused (dirty tree, credential), io, no_space.
[[nodiscard]] Result<Bundle> seal(const spec::BundleSpec& spec, BlobStore& store,
                                  const SealOptions& options = {});

/// Errors: not_found, integrity.
[[nodiscard]] Result<Bundle> load(const BlobStore& store, const Digest& digest);

/// All bundles in the index, in index order. Errors: integrity, io.
[[nodiscard]] Result<std::vector<Bundle>> list(const BlobStore& store);

/// A digest, unique digest prefix (>= 6 hex) or bundle name (its newest seal).
/// Errors: not_found, invalid_input (ambiguous, with the candidates).
[[nodiscard]] Result<Digest> resolve(const BlobStore& store, const std::string& reference);

/// Re-reads every hop index -> manifest -> config -> blobs. Empty = clean; each fault names its
/// hop. Works read-only and without locks. Blobs are read in parallel, `jobs` at once, 16 at most
/// (0 = one a processor); the order of the faults does not depend on it.
[[nodiscard]] std::vector<Error> verify(const BlobStore& store, const Digest& digest,
                                        unsigned jobs = 0);

/// Lays the bundle out for a job below `folder` (must not exist): code/<name>/…,
/// config/<name>/<file>, all read-only. Every blob is verified while it is read, and so is the
/// container, which stays in the store. Errors: integrity, io, no_space.
[[nodiscard]] Result<void> materialize(const BlobStore& store, const Bundle& bundle,
                                       const std::filesystem::path& folder);

/// The config blob's JSON form, for `bundle show --json`.
[[nodiscard]] Json to_json(const Bundle& bundle);

}  // namespace qualify::store
