// describe-qualify TEXTS OUTPUT: writes the manual page and the shell completions of the program's
// own commands. Run while building, so that neither can say other than the program does.
#include <CLI/CLI.hpp>
#include <iostream>

#include "../src/app.hpp"
#include "command_tree.hpp"
#include "completions.hpp"
#include "qualify/base/files.hpp"
#include "qualify/base/version.hpp"
#include "roff.hpp"

int main(int argc, char** argv) {
  using namespace qualify;
  if (argc != 3) {
    std::cerr << "usage: describe-qualify TEXTS OUTPUT\n";
    return 2;
  }
  const fs::path texts = argv[1];
  const fs::path output = argv[2];

  SystemClock clock;
  cli::Session session{std::cout, std::cerr, clock, {}, {}, {}, {}, {}, false, 80, {}, Exit::ok};
  CLI::App app;
  cli::describe_program(app, session);
  const cli::manual::Command program = cli::manual::read_commands(app, texts);
  for (const cli::manual::Command& command : program.commands) {
    if (command.text.empty()) {
      std::cerr << "describe-qualify: command '" << command.name << "' has no manual text: write "
                << (texts / (command.name + ".md")).string() << '\n';
      return 1;
    }
  }

  const std::pair<const char*, std::string> files[] = {
      {"qualify.1", cli::manual::manual_page(program, version())},
      {"qualify.bash", cli::manual::bash_completion(program)},
      {"_qualify", cli::manual::zsh_completion(program)},
      {"qualify.fish", cli::manual::fish_completion(program)},
  };
  for (const auto& [name, content] : files) {
    if (const auto written = write_file_atomic(output / name, content); !written) {
      std::cerr << "describe-qualify: " << written.error().describe() << '\n';
      return 1;
    }
  }
  return 0;
}
