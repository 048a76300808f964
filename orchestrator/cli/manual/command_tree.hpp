#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace CLI {
class App;
}

/// The commands of the program as plain values, from which manual page and completions are made.
namespace qualify::cli::manual {

/// What may follow an option or stand as an argument.
enum class Values { none, any, path, choice };

struct Option {
  std::vector<std::string> names;    ///< "--json", "-q"; long ones first; empty for an argument
  std::string value_name;            ///< "DIR"; the argument's own name for arguments
  std::string about;                 ///< one line
  Values values = Values::none;      ///< none = a flag
  std::vector<std::string> choices;  ///< for Values::choice
  bool required = false;
  bool repeated = false;
};

struct Command {
  std::string name;   ///< "qualify", "bundle", "seal"
  std::string about;  ///< one line
  std::string text;   ///< manual text (the Markdown subset of roff.hpp); may be empty
  std::vector<Option> options;
  std::vector<Option> arguments;
  std::vector<Command> commands;  ///< in the order of --help
};

/// Reads the whole tree; commands and options without a group (CLI11's way to hide them) are left
/// out. `texts` is the folder with COMMAND.md for each command right below the program.
[[nodiscard]] Command read_commands(const CLI::App& app, const std::filesystem::path& texts);

}  // namespace qualify::cli::manual
