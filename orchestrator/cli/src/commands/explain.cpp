#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "../commands.hpp"
#include "../explanation.hpp"
#include "../subject.hpp"

namespace qualify::cli {

namespace {

struct Options {
  std::string name;
  bool json = false;
};

Result<Exit> run_explain(Session& session, const Options& options) {
  auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  const auto found = find_qualification(*state, options.name);
  if (!found) return tl::unexpected(found.error());
  if (!*found) {
    return fail(Errc::not_found, "no gate or qualification '" + options.name + "' has been run",
                session.state_folder().string(), "what there is: qualify status");
  }
  auto all = explain(*state, **found);
  if (!all) return tl::unexpected(all.error());
  if (options.json) {
    session.print_json(std::move(*all));
  } else {
    print_tree(session.out, explanation_tree(*all), session.width);
  }
  return Exit::ok;
}

}  // namespace

void add_explain(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "explain", "What a verdict rests on: comparisons, evidence, runs, jobs, nodes");
  command->add_option("GATE", options->name, "Gate (its latest), or a qualification: repeat-2")
      ->required();
  command->add_flag("--json", options->json, "Print one JSON record");
  command->callback([&session, options] { session.finish(run_explain(session, *options)); });
}

}  // namespace qualify::cli
