#include <CLI/CLI.hpp>
#include <memory>

#include "../commands.hpp"
#include "../conduct.hpp"
#include "../gate_options.hpp"
#include "qualify/store/bundle.hpp"

namespace qualify::cli {

namespace {

Result<Exit> run_gate(Session& session, const GateOptions& options, const std::string& wait) {
  run::Limits limits;
  if (!wait.empty()) {
    const auto duration = parse_duration(wait);
    if (!duration) return tl::unexpected(duration.error());
    limits.start_wait = *duration;
  }
  const auto gate = find_gate(session, options.file, options.gate);
  if (!gate) return tl::unexpected(gate.error());
  auto state = open_state(session);
  if (!state) return tl::unexpected(state.error());
  const auto digest = store::resolve(state->bundles, options.bundle);
  if (!digest) return tl::unexpected(digest.error());
  return conduct(session, *state, *gate, *digest, options.reservation, options.json, limits);
}

}  // namespace

void add_run(CLI::App& app, Session& session) {
  auto options = std::make_shared<GateOptions>();
  CLI::App* command =
      app.add_subcommand("run", "Run a gate to its verdict, or go on with an unfinished one");
  add_gate_options(*command, *options);
  auto wait = std::make_shared<std::string>();
  command
      ->add_option("--wait", *wait,
                   "Wait so long for what may pass (the reservation's start, a node): 90s, 4h")
      ->type_name("DURATION");
  command->footer(
      "Ctrl-C cancels the live job; SIGTERM and SIGHUP leave it running.\n"
      "The same command goes on from there.");
  command->callback(
      [&session, options, wait] { session.finish(run_gate(session, *options, *wait)); });
}

}  // namespace qualify::cli
