#include <CLI/CLI.hpp>
#include <memory>

#include "../commands.hpp"
#include "../conduct.hpp"
#include "../gate_options.hpp"
#include "../judge_composite.hpp"
#include "qualify/store/bundle.hpp"

namespace qualify::cli {

namespace {

/// A gate that rests on others takes none of what is said about runs.
Result<void> no_runs_asked(const policy::Gate& gate, const GateOptions& options,
                           const std::string& wait) {
  const char* option = !options.bundle.empty()        ? "--bundle"
                       : !options.reservation.empty() ? "--reservation"
                       : !wait.empty()                ? "--wait"
                                                      : nullptr;
  if (option == nullptr) return {};
  return fail(Errc::usage,
              std::string("gate '") + gate.name + "' is of kind " + policy::name_of(gate.kind) +
                  " and has no runs: " + option + " says nothing",
              {}, "qualify run " + gate.name);
}

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
  if (policy::is_composite(gate->kind)) {
    if (auto fit = no_runs_asked(*gate, options, wait); !fit) return tl::unexpected(fit.error());
    return judge_composite(session, *state, *gate, options);
  }
  if (options.bundle.empty()) {
    return fail(Errc::usage, "gate '" + gate->name + "' runs a bundle: which one?", {},
                "qualify run " + gate->name + " --bundle NAME");
  }
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
  command->get_option("--bundle")
      ->required(false)
      ->description("Digest, its beginning, or name; none for coverage and enablement");
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
