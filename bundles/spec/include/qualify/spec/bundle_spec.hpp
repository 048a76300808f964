#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "qualify/base/error.hpp"
#include "qualify/base/json.hpp"
#include "qualify/spec/document.hpp"

/// What a person writes: bundle.yaml as values. Format page: docs/formats/bundle.md.
namespace qualify::spec {

enum class RecipeClass { production, proxy, debug };
[[nodiscard]] const char* name_of(RecipeClass recipe);

/// One git repository at one commit.
struct CodeInput {
  std::string name;                  ///< unique; `{code.NAME}` in argv is its folder in the job
  std::filesystem::path repository;  ///< absolute
  std::string revision = "HEAD";     ///< anything git resolves to a commit; resolved at sealing
  Mark mark;
};

/// A file that keeps its bytes; `{config.NAME}` in argv is its path in the job.
struct ConfigInput {
  std::string name;
  std::filesystem::path file;  ///< absolute
  bool check = true;  ///< .json and .yaml must parse strictly; false = any bytes, not looked at
  Mark mark;
};

enum class ContainerKind { none, sqsh, sif, oci_layout, oci_archive, reference };
[[nodiscard]] const char* name_of(ContainerKind kind);

struct ContainerInput {
  ContainerKind kind = ContainerKind::none;
  std::filesystem::path file;  ///< absolute; for the stored kinds
  std::string reference;       ///< "registry/name@sha256:…" for kind reference
  Mark mark;
};

/// One way of running. What may differ between arms is what stands here, nothing else.
struct Arm {
  std::string name;
  std::vector<std::string> arguments;              ///< appended to launch.argv
  std::map<std::string, std::string> environment;  ///< over the bundle's; placeholders as in argv
  Mark mark;
};

struct Topology {
  std::uint32_t nodes = 1;
  std::uint32_t gpus_per_node = 0;
  std::uint32_t tensor_parallel = 1;
  std::uint32_t pipeline_parallel = 1;
  std::uint32_t expert_parallel = 1;
  std::uint32_t context_parallel = 1;
  std::uint32_t data_parallel = 1;
};

/// Every field, for config blobs, plans and certificates: one form.
[[nodiscard]] Json to_json(const Topology& topology);
/// Errors: invalid_input.
[[nodiscard]] Result<Topology> topology_from_json(const Json& json);

struct Launch {
  std::uint32_t tasks_per_node = 1;
  std::vector<std::string> argv;  ///< placeholders {code.NAME} {config.NAME} {data.NAME}
                                  ///< {container} {output} {seed}, and in arms that are resumed
                                  ///< {checkpoint} {checkpoint_iteration}; "{{" and "}}" are
                                  ///< braces (placeholders.hpp)
};

/// Something that the workload leaves below {output}.
struct Output {
  std::string kind;    ///< "metrics", "trace", "checkpoint", "log"
  std::string path;    ///< relative to {output}, no "..", '/'-separated
  std::string format;  ///< the reader's name ("tensorboard", …); empty = told by content
  bool required = true;
};

struct DataInput {
  std::string name;
  std::optional<std::filesystem::path> path;  ///< absolute; folder or file whose content is hashed
  std::string digest;  ///< "sha256:…" given instead of, or checked against, the content
  Mark mark;
};

struct BundleSpec {
  std::filesystem::path file;  ///< the spec itself, absolute
  std::string name;
  RecipeClass recipe = RecipeClass::debug;
  std::string model;
  std::vector<CodeInput> code;
  ContainerInput container;
  std::vector<ConfigInput> configs;
  std::map<std::string, std::string> environment;  ///< set in every arm; placeholders as in argv
  std::vector<std::string> passed_environment;     ///< names passed at launch, never recorded
  std::map<std::string, std::string> required_environment;  ///< effective value must be this
  std::vector<Arm> arms;
  std::vector<DataInput> data;
  Topology topology;
  std::vector<std::int64_t> seeds;
  Launch launch;
  std::vector<Output> outputs;
};

/// Reads and checks a spec; relative paths are taken from the spec's folder. All faults are
/// reported at once (Error::others), each with "file:line:column", what was expected and the
/// nearest valid key. Errors: not_found, invalid_input.
[[nodiscard]] Result<BundleSpec> read_bundle_spec(const std::filesystem::path& file);

}  // namespace qualify::spec
