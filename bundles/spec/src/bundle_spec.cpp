#include "qualify/spec/bundle_spec.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string_view>

#include "qualify/base/digest.hpp"
#include "qualify/spec/names.hpp"
#include "qualify/spec/placeholders.hpp"

namespace qualify::spec {

namespace {

constexpr std::int64_t kSchemaVersion = 1;
constexpr std::int64_t kMostNodes = 1'000'000;

const std::vector<std::string> kRecipes{"production", "proxy", "debug"};
const std::vector<std::string> kContainers{"none",       "sqsh",        "sif",
                                           "oci-layout", "oci-archive", "reference"};
const std::vector<std::string> kOutputs{"metrics", "trace", "checkpoint", "log"};
/// The readers' names (evidence::format_names(), which tests hold this list to): one that there is
/// none of must not be found out when the runs are over.
const std::vector<std::string> kOutputFormats{"tensorboard",  "golden-values", "trace-pr6610",
                                              "trace-fork",   "json-lines",    "csv",
                                              "megatron-log", "checkpoint"};

/// Reads one spec; all faults go to `faults_`.
class Reader {
 public:
  Reader(const Node& root, const std::filesystem::path& file, Faults& faults)
      : top_(root, "the bundle", faults), folder_(file.parent_path()) {
    spec_.file = file;
  }

  BundleSpec read() {
    top_.schema_version(kSchemaVersion);
    spec_.name = top_.required_text("name");
    check_name("name", spec_.name, top_.mark("name"));
    spec_.recipe = static_cast<RecipeClass>(top_.choice("recipe", kRecipes, std::nullopt));
    spec_.model = top_.text("model");
    read_code();
    read_container();
    read_configs();
    read_environment();
    read_data();
    read_topology();
    read_seeds();
    read_arms();
    read_launch();
    read_outputs();
    top_.finish();
    return std::move(spec_);
  }

 private:
  std::filesystem::path absolute(const std::string& path) const {
    return (folder_ / path).lexically_normal();
  }

  void check_name(const char* what, const std::string& name, Mark at) {
    if (name.empty() || is_name(name)) return;
    top_.fault(at, std::string(what) + " '" + name + "' is not a usable name",
               "at most 64 letters, digits, '.', '_' and '-', starting with a letter or digit");
  }

  void read_code() {
    top_.each_named("code", "code", [&](const std::string& name, Fields& fields) {
      check_name("code", name, fields.mark());
      const std::string repository = fields.required_text("repository");
      CodeInput input{name, absolute(repository), fields.text("revision", "HEAD"), fields.mark()};
      if (input.revision.empty()) fields.fault(fields.mark("revision"), "'revision' is empty");
      spec_.code.push_back(std::move(input));
    });
  }

  void read_container() {
    top_.section("container", "the container", [&](Fields& fields) {
      ContainerInput& container = spec_.container;
      container.mark = fields.mark();
      container.kind = static_cast<ContainerKind>(fields.choice("kind", kContainers, std::nullopt));
      if (container.kind == ContainerKind::reference) {
        container.reference = fields.required_text("reference");
        if (!container.reference.empty()) check_reference(container.reference, fields);
      } else if (container.kind != ContainerKind::none) {
        const std::string file = fields.required_text("file");
        if (!file.empty()) container.file = absolute(file);
      }
    });
  }

  static void check_reference(const std::string& reference, Fields& fields) {
    const std::size_t at = reference.rfind('@');
    const bool pinned = at != std::string::npos && at > 0 &&
                        reference.compare(at + 1, 7, "sha256:") == 0 &&
                        Digest::parse(std::string_view(reference).substr(at + 1)).has_value();
    if (!pinned) {
      fields.fault(fields.mark("reference"),
                   "container reference '" + reference + "' is not pinned by digest",
                   "write registry/name@sha256:…; a tag can move. "
                   "`skopeo inspect docker://IMAGE` prints the digest");
    } else if (reference.find("://") != std::string::npos) {
      fields.fault(fields.mark("reference"), "container reference has a scheme",
                   "write registry/name@sha256:… without it");
    }
  }

  void read_configs() {
    top_.each_named("configs", "config", [&](const std::string& name, Fields& fields) {
      check_name("config", name, fields.mark());
      ConfigInput config;
      config.name = name;
      config.file = absolute(fields.required_text("file"));
      if (fields.has("file") && !is_file_name(config.file.filename().string())) {
        fields.fault(fields.mark("file"), "'file' does not name a file that can be sealed",
                     "name a file, without control characters in its name");
      }
      config.check = fields.boolean("check", true);
      config.mark = fields.mark();
      spec_.configs.push_back(std::move(config));
    });
  }

  void check_variables(const std::map<std::string, std::string>& variables, Mark at) {
    for (const auto& [name, value] : variables) check_variable(name, at);
  }
  void check_variable(const std::string& name, Mark at) {
    if (!is_variable_name(name)) {
      top_.fault(at, "'" + name + "' is not the name of an environment variable",
                 "letters, digits and '_', not starting with a digit");
    }
  }

  void read_environment() {
    spec_.environment = top_.text_map("environment");
    check_variables(spec_.environment, top_.mark("environment"));
    spec_.passed_environment = top_.texts("passed_environment");
    for (const std::string& name : spec_.passed_environment) {
      check_variable(name, top_.mark("passed_environment"));
      if (spec_.environment.contains(name)) {
        top_.fault(top_.mark("passed_environment"),
                   "'" + name + "' is both set and passed at launch",
                   "a passed value never enters the bundle: remove it from 'environment'");
      }
    }
    spec_.required_environment = top_.text_map("required_environment");
    check_variables(spec_.required_environment, top_.mark("required_environment"));
  }

  void read_data() {
    top_.each_named("data", "data", [&](const std::string& name, Fields& fields) {
      check_name("data", name, fields.mark());
      DataInput input;
      input.name = name;
      input.mark = fields.mark();
      if (const std::string path = fields.text("path"); !path.empty()) input.path = absolute(path);
      input.digest = fields.text("digest");
      if (!input.digest.empty() &&
          !(input.digest.starts_with("sha256:") && Digest::parse(input.digest))) {
        fields.fault(fields.mark("digest"), "'" + input.digest + "' is not a digest",
                     "write sha256: and 64 lower-case hexadecimal digits");
      }
      if (!input.path && input.digest.empty()) {
        fields.fault(fields.mark(), "data '" + name + "' needs 'path', 'digest' or both");
      }
      spec_.data.push_back(std::move(input));
    });
  }

  void read_topology() {
    top_.section("topology", "the topology", [&](Fields& fields) {
      Topology& topology = spec_.topology;
      const auto count = [&](const char* key, std::uint32_t fallback, std::int64_t least) {
        return static_cast<std::uint32_t>(fields.integer(key, fallback, least, kMostNodes));
      };
      topology.nodes = count("nodes", 1, 1);
      topology.gpus_per_node = count("gpus_per_node", 0, 0);
      topology.tensor_parallel = count("tensor_parallel", 1, 1);
      topology.pipeline_parallel = count("pipeline_parallel", 1, 1);
      topology.expert_parallel = count("expert_parallel", 1, 1);
      topology.context_parallel = count("context_parallel", 1, 1);
      check_parallelism(fields);
    });
  }

  /// Megatron's rule: world size = tensor x pipeline x context x data; experts are spread over
  /// ranks of one pipeline stage. Without GPUs the world is not known here.
  void check_parallelism(Fields& fields) {
    Topology& topology = spec_.topology;
    const std::uint64_t world = std::uint64_t{topology.nodes} * topology.gpus_per_node;
    const std::uint64_t model = std::uint64_t{topology.tensor_parallel} *
                                topology.pipeline_parallel * topology.context_parallel;
    const bool known = world > 0;
    const std::uint64_t derived = known && world % model == 0 ? world / model : 1;
    topology.data_parallel = static_cast<std::uint32_t>(
        fields.integer("data_parallel", static_cast<std::int64_t>(derived), 1, kMostNodes * 64));
    if (!known) return;
    const std::string gpus = std::to_string(world) + " GPUs (" + std::to_string(topology.nodes) +
                             " nodes x " + std::to_string(topology.gpus_per_node) + ")";
    if (world % model != 0 || topology.data_parallel != world / model) {
      fields.fault(fields.mark(), "tensor x pipeline x context x data parallel = " +
                                      std::to_string(model * topology.data_parallel) +
                                      ", but there are " + gpus);
    }
    if (world % (std::uint64_t{topology.expert_parallel} * topology.pipeline_parallel) != 0) {
      fields.fault(fields.mark("expert_parallel"),
                   "expert x pipeline parallel does not divide " + gpus);
    }
  }

  void read_seeds() {
    spec_.seeds = top_.integers("seeds");
    std::set<std::int64_t> seen;
    for (const std::int64_t seed : spec_.seeds) {
      if (seed < 0) {
        top_.fault(top_.mark("seeds"), "seed " + std::to_string(seed) + " is negative");
      }
      if (!seen.insert(seed).second) {
        top_.fault(top_.mark("seeds"), "seed " + std::to_string(seed) + " stands there twice");
      }
    }
  }

  void read_arms() {
    top_.each_named("arms", "arm", [&](const std::string& name, Fields& fields) {
      check_name("arm", name, fields.mark());
      Arm arm{name, fields.texts("arguments"), fields.text_map("environment"), fields.mark()};
      check_variables(arm.environment, fields.mark("environment"));
      for (const auto& [variable, value] : arm.environment) {
        if (std::find(spec_.passed_environment.begin(), spec_.passed_environment.end(), variable) !=
            spec_.passed_environment.end()) {
          fields.fault(fields.mark("environment"),
                       "'" + variable + "' is both set here and passed at launch");
        }
      }
      check_placeholders(arm.arguments, fields.mark("arguments"));
      check_placeholders(arm.environment, fields.mark("environment"));
      check_required(arm, fields.mark("environment"));
      spec_.arms.push_back(std::move(arm));
    });
    if (spec_.arms.empty()) {
      top_.fault(top_.mark("arms"), "the bundle needs at least one arm",
                 "for example  arms: {deterministic: {arguments: [--deterministic-mode]}}");
    }
    check_placeholders(spec_.environment, top_.mark("environment"));
  }

  /// A value that is set here cannot become the required one on the way to the job.
  void check_required(const Arm& arm, Mark at) {
    for (const auto& [name, wanted] : spec_.required_environment) {
      const bool own = arm.environment.contains(name);
      const auto& variables = own ? arm.environment : spec_.environment;
      const auto set = variables.find(name);
      if (set == variables.end() || set->second == wanted) continue;
      if (const auto names = placeholders_in(set->second); !names || !names->empty()) continue;
      top_.fault(own ? at : top_.mark("environment"),
                 "arm '" + arm.name + "' has " + name + "='" + set->second +
                     "', but 'required_environment' says '" + wanted + "'",
                 "no run of it could start; change one of them");
    }
  }

  void read_launch() {
    if (!top_.has("launch")) {
      top_.fault(top_.mark(), "the bundle needs 'launch'", "launch: {argv: [program, argument]}");
    }
    top_.section("launch", "the launch", [&](Fields& fields) {
      spec_.launch.tasks_per_node =
          static_cast<std::uint32_t>(fields.integer("tasks_per_node", 1, 1, 4096));
      spec_.launch.argv = fields.texts("argv");
      if (spec_.launch.argv.empty() || spec_.launch.argv.front().empty()) {
        fields.fault(fields.mark("argv"), "the launch needs 'argv' with a program first");
      }
      check_placeholders(spec_.launch.argv, fields.mark("argv"));
    });
  }

  void read_outputs() {
    std::set<std::string> seen;
    top_.each("outputs", "an output", [&](Fields& fields) {
      Output output;
      output.kind = kOutputs[fields.choice("kind", kOutputs, std::nullopt)];
      output.path = fields.required_text("path");
      const auto format = fields.choice("format", kOutputFormats, kOutputFormats.size());
      if (format < kOutputFormats.size()) output.format = kOutputFormats[format];
      output.required = fields.boolean("required", true);
      if (!output.path.empty() && !is_inside(output.path)) {
        fields.fault(fields.mark("path"), "output path '" + output.path + "' leaves {output}",
                     "write it relative, without '.' and '..' parts");
      } else if (!output.path.empty() && !seen.insert(output.kind + "\n" + output.path).second) {
        fields.fault(fields.mark("path"),
                     "output '" + output.path + "' stands there twice as " + output.kind);
      }
      spec_.outputs.push_back(std::move(output));
    });
  }

  // ---- placeholders -------------------------------------------------------------------------
  void check_placeholders(const std::map<std::string, std::string>& variables, Mark at) {
    for (const auto& [name, value] : variables) check_placeholders({value}, at);
  }

  void check_placeholders(const std::vector<std::string>& arguments, Mark at) {
    for (const std::string& argument : arguments) {
      const auto names = placeholders_in(argument);
      if (!names) {
        top_.fault(at, names.error().message, names.error().hint);
        continue;
      }
      for (const std::string& name : *names) check_placeholder(name, at);
    }
  }

  void check_placeholder(const std::string& name, Mark at) {
    const auto known = known_placeholders();
    if (std::find(known.begin(), known.end(), name) != known.end()) {
      if (name == "seed" && spec_.seeds.empty()) {
        top_.fault(at, "{seed} is used, but 'seeds' is empty", "seeds: [1234]");
      }
      return;
    }
    const std::string near = nearest(name, known);
    std::string all;
    for (const std::string& one : known) all += " {" + one + "}";
    top_.fault(at, "unknown placeholder '{" + name + "}'",
               near.empty() ? "known ones:" + all + "; write '{{' or '}}' for a plain brace"
                            : "did you mean '{" + near + "}'?");
  }

  [[nodiscard]] std::vector<std::string> known_placeholders() const {
    std::vector<std::string> known{"output", "seed", "checkpoint", "checkpoint_iteration"};
    if (spec_.container.kind != ContainerKind::none) known.emplace_back("container");
    for (const auto& input : spec_.code) known.push_back("code." + input.name);
    for (const auto& input : spec_.configs) known.push_back("config." + input.name);
    for (const auto& input : spec_.data) {
      if (input.path) known.push_back("data." + input.name);
    }
    return known;
  }

  Fields top_;
  std::filesystem::path folder_;
  BundleSpec spec_;
};

}  // namespace

const char* name_of(RecipeClass recipe) {
  return kRecipes[static_cast<std::size_t>(recipe)].c_str();
}

const char* name_of(ContainerKind kind) {
  return kContainers[static_cast<std::size_t>(kind)].c_str();
}

Result<BundleSpec> read_bundle_spec(const std::filesystem::path& file) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(file, error).lexically_normal();
  if (error) return fail_errno(error.value(), "cannot resolve", file.string());
  auto root = read_yaml(file);
  if (!root) return tl::unexpected(root.error());
  Faults faults(file.string());
  BundleSpec spec = Reader(*root, absolute, faults).read();
  if (!faults.empty()) return faults.fail();
  return spec;
}

}  // namespace qualify::spec
