#include <CLI/CLI.hpp>

#include "../commands.hpp"

namespace qualify::cli {

namespace {

Result<Exit> run_init(Session& session) {
  const auto folder = session.state_option.empty() && session.variable("QUALIFY_STATE").empty()
                          ? session.folder / ".qualify"
                          : session.state_folder();
  if (auto made = run::init_state(folder); !made) return tl::unexpected(made.error());
  session.out << "State: " << folder.string() << "\n"
              << "Key:   " << run::StatePaths{folder}.signing_key().string() << "\n"
              << "Next:  qualify bundle seal bundle.yaml\n";
  return Exit::ok;
}

}  // namespace

void add_init(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("init", "Make a state folder with a signing key");
  command->callback([&session] { session.finish(run_init(session)); });
}

}  // namespace qualify::cli
