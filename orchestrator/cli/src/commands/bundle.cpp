#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "../commands.hpp"
#include "../table.hpp"
#include "bundle_store.hpp"
#include "qualify/store/bundle.hpp"

namespace qualify::cli {

namespace {

struct Options {
  std::string spec;
  std::string bundle;
  bool allow_dirty = false;
  bool json = false;
  bool quiet = false;
  unsigned jobs = 0;
};

Result<Exit> run_seal(Session& session, const Options& options) {
  const auto spec = spec::read_bundle_spec(session.folder / options.spec);
  if (!spec) return tl::unexpected(spec.error());
  auto state = open_state(session);
  if (!state) return tl::unexpected(state.error());
  const auto bundle = store::seal(*spec, state->bundles, {options.allow_dirty, options.jobs});
  if (!bundle) return tl::unexpected(bundle.error());
  if (options.json) {
    session.print_json(to_json(*bundle));
  } else if (options.quiet) {
    session.out << bundle->digest.str() << '\n';
  } else {
    session.out << "Sealed " << printable(bundle->name) << " as " << bundle->digest.str() << '\n';
    if (bundle->dirty) {
      session.out << "It is dirty (--allow-dirty): it can run, but never gets a certificate.\n";
    }
  }
  return Exit::ok;
}

void print_bundle(Session& session, const store::Bundle& bundle) {
  Table table({"bundle", bundle.digest.str()});
  table.add({"name", bundle.name});
  table.add({"recipe", spec::name_of(bundle.recipe)});
  if (!bundle.model.empty()) table.add({"model", bundle.model});
  if (bundle.dirty) table.add({"dirty", "yes: no certificate"});
  for (const auto& code : bundle.code) {
    table.add({"code", code.name + " at " + code.commit + " (" + code.revision + ")"});
  }
  for (const auto& config : bundle.configs) {
    table.add(
        {"config", config.name + " " + config.file_name + " " + config.content.digest.brief()});
  }
  std::string container = spec::name_of(bundle.container.kind);
  if (!bundle.container.reference.empty()) container += " " + bundle.container.reference;
  if (bundle.container.content.size > 0) container += " " + bundle.container.content.digest.brief();
  table.add({"container", container});
  for (const auto& [name, value] : bundle.environment) table.add({"env", name + "=" + value});
  for (const auto& name : bundle.passed_environment) {
    table.add({"env", name + " (passed at launch)"});
  }
  for (const auto& [name, value] : bundle.required_environment) {
    table.add({"requires", name + "=" + value});
  }
  for (const auto& data : bundle.data) table.add({"data", data.name + " " + data.digest});
  table.add({"topology", std::to_string(bundle.topology.nodes) + " nodes x " +
                             std::to_string(bundle.topology.gpus_per_node) + " GPUs, " +
                             std::to_string(bundle.launch.tasks_per_node) + " tasks a node"});
  const spec::Topology& topology = bundle.topology;
  if (topology.nodes * topology.gpus_per_node > 1) {
    table.add({"parallel", "TP " + std::to_string(topology.tensor_parallel) + ", PP " +
                               std::to_string(topology.pipeline_parallel) + ", EP " +
                               std::to_string(topology.expert_parallel) + ", CP " +
                               std::to_string(topology.context_parallel) + ", DP " +
                               std::to_string(topology.data_parallel)});
  }
  std::string seeds;
  for (const std::int64_t seed : bundle.seeds) {
    seeds += (seeds.empty() ? "" : ", ") + std::to_string(seed);
  }
  if (!seeds.empty()) table.add({"seeds", seeds});
  std::string argv;
  for (const std::string& word : bundle.launch.argv) argv += (argv.empty() ? "" : " ") + word;
  table.add({"argv", argv});
  for (const auto& arm : bundle.arms) {
    std::string differs;
    for (const std::string& word : arm.arguments) differs += " " + word;
    for (const auto& [name, value] : arm.environment) differs += " " + name + "=" + value;
    table.add({"arm", arm.name + ":" + (differs.empty() ? " nothing added" : differs)});
  }
  for (const auto& output : bundle.outputs) {
    table.add({"output", output.kind + " " + output.path + (output.required ? "" : " (optional)")});
  }
  table.print(session.out, session.width);
}

Result<Exit> run_show(Session& session, const Options& options) {
  const auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  const auto digest = store::resolve(state->bundles, options.bundle);
  if (!digest) return tl::unexpected(digest.error());
  const auto bundle = store::load(state->bundles, *digest);
  if (!bundle) return tl::unexpected(bundle.error());
  if (options.json) {
    session.print_json(to_json(*bundle));
  } else {
    print_bundle(session, *bundle);
  }
  return Exit::ok;
}

Result<Exit> run_verify(Session& session, const Options& options) {
  const auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  const auto digest = store::resolve(state->bundles, options.bundle);
  if (!digest) return tl::unexpected(digest.error());
  return session.report({{"bundle", digest->str()}},
                        store::verify(state->bundles, *digest, options.jobs), options.json,
                        digest->str());
}

void add_jobs(CLI::App* command, Options& options, const char* text) {
  command->add_option("--jobs", options.jobs, text)
      ->type_name("N")
      ->check(CLI::Range(1U, 1024U).description(""));
}

}  // namespace

void add_bundle(CLI::App& app, Session& session) {
  CLI::App* group = app.add_subcommand("bundle", "Seal, verify, compare and carry bundles");
  group->require_subcommand(1);

  const auto add = [&](const char* name, const char* text,
                       Result<Exit> (*action)(Session&, const Options&)) {
    auto options = std::make_shared<Options>();
    CLI::App* command = group->add_subcommand(name, text);
    command->add_flag("--json", options->json, "Print one JSON record");
    command->callback([&session, options, action] { session.finish(action(session, *options)); });
    return std::pair(command, options);
  };
  {
    const auto [command, options] =
        add("seal", "Freeze what a spec names into the store", run_seal);
    command->add_option("SPEC", options->spec, "Bundle spec (bundle.yaml)")
        ->type_name("FILE")
        ->required();
    command->add_flag("--allow-dirty", options->allow_dirty,
                      "Accept uncommitted changes; the bundle can never be certified");
    command->add_flag("-q,--quiet", options->quiet, "Print the digest only");
    add_jobs(command, *options, "Inputs read at once (default: one a processor, 16 at most)");
  }
  {
    const auto [command, options] = add("show", "Show what a bundle holds", run_show);
    command->add_option("BUNDLE", options->bundle, "Digest, its beginning, or name")->required();
  }
  {
    const auto [command, options] = add("verify", "Read and hash everything again", run_verify);
    command->add_option("BUNDLE", options->bundle, "Digest, its beginning, or name")->required();
    add_jobs(command, *options, "Blobs read at once (default: one a processor, 16 at most)");
  }
  add_bundle_store(*group, session);
}

}  // namespace qualify::cli
