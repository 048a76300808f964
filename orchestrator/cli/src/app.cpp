#include "app.hpp"

#include <CLI/CLI.hpp>

#include "commands.hpp"
#include "help.hpp"
#include "qualify/base/version.hpp"

namespace qualify::cli {

namespace {

/// "qualify 0.1.0" and what can be loaded at run time.
std::string version_text(const Session& session) {
  std::string text = std::string("qualify ") + version() + "\nbackends: local";
  if (const auto module = find_slurm_module(session); module) text += ", " + *module;
  return text;
}

}  // namespace

void describe_program(CLI::App& app, Session& session) {
  app.name("qualify");
  app.formatter(help_formatter());  // commands that are added take it over
  app.description("Qualifies the determinism of large training setups, with evidence.");
  app.set_version_flag(
      "--version", [&session] { return version_text(session); },
      "Print the version and the backends that are there");
  app.add_option("--state", session.state_option, "State folder (default: the nearest .qualify)")
      ->type_name("DIR");
  app.require_subcommand(1);
  app.fallthrough();
  app.footer(
      "Exit codes: 0 pass, equal, done; 1 fail, differs; 2 usage, bad input or a file\n"
      "that cannot be used; 3 inconclusive, needs a decision, blocked or refused;\n"
      "4 scheduler or system unavailable; 5 integrity fault; 130 stopped by Ctrl-C.");
  for (const AddCommand add : kCommands) add(app, session);
}

}  // namespace qualify::cli
