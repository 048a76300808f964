#include "command_tree.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <sstream>

namespace qualify::cli::manual {

namespace {

/// CLI11 appends the choices of IsMember to the type name: "TEXT:{local,slurm}".
std::vector<std::string> choices_of(const std::string& type) {
  const auto open = type.find('{');
  const auto close = type.rfind('}');
  std::vector<std::string> choices;
  if (open == std::string::npos || close == std::string::npos || close < open) return choices;
  std::istringstream list(type.substr(open + 1, close - open - 1));
  for (std::string choice; std::getline(list, choice, ',');) choices.push_back(choice);
  return choices;
}

bool names_a_path(const std::string& type) {
  constexpr std::array words{"FILE", "DIR", "PATH", "FOLDER"};
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return type.find(word) != std::string::npos; });
}

Option read_option(const CLI::Option& from) {
  Option option;
  for (const std::string& name : from.get_lnames()) option.names.push_back("--" + name);
  for (const std::string& name : from.get_snames()) option.names.push_back("-" + name);
  option.about = from.get_description();
  option.required = from.get_required();
  option.repeated = from.get_items_expected_max() > 1;
  if (from.get_items_expected_max() == 0) return option;
  const std::string type = from.get_type_name();
  option.choices = choices_of(type);
  option.values = !option.choices.empty() ? Values::choice
                  : names_a_path(type)    ? Values::path
                                          : Values::any;
  option.value_name = option.names.empty() ? from.get_name(true) : type.substr(0, type.find(':'));
  if (option.value_name.empty()) option.value_name = "VALUE";
  return option;
}

Command read_command(const CLI::App& app) {
  Command command;
  command.name = app.get_name();
  command.about = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    Option read = read_option(*option);
    (read.names.empty() ? command.arguments : command.options).push_back(std::move(read));
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!sub->get_group().empty() && !sub->get_name().empty()) {
      command.commands.push_back(read_command(*sub));
    }
  }
  return command;
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

}  // namespace

Command read_commands(const CLI::App& app, const std::filesystem::path& texts) {
  Command program = read_command(app);
  program.text = text_of(texts / (program.name + ".md"));
  for (Command& command : program.commands) command.text = text_of(texts / (command.name + ".md"));
  return program;
}

}  // namespace qualify::cli::manual
