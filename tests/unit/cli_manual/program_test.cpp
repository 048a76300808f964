#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <sstream>

#include "app.hpp"
#include "command_tree.hpp"
#include "support/fake_clock.hpp"

namespace {

using namespace qualify;

/// The program's own commands, as `qualify` itself has them.
class Program : public testing::Test {
 protected:
  Program() { cli::describe_program(app_, session_); }

  template <class Visit>
  static void each(const CLI::App& app, const std::string& path, const Visit& visit) {
    visit(path, app);
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
      if (!sub->get_group().empty()) each(*sub, path + ' ' + sub->get_name(), visit);
    }
  }

  std::ostringstream out_, err_;
  test::FakeClock clock_;
  cli::Session session_{out_, err_, clock_, {}, {}, {}, {}, {}, false, 80, {}, Exit::ok};
  CLI::App app_;
};

TEST_F(Program, EveryHelpFitsEightyColumns) {
  each(app_, "qualify", [](const std::string& path, const CLI::App& app) {
    std::istringstream lines(app.help());
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 80U) << path << " --help: " << line;
    }
  });
}

TEST_F(Program, EveryOptionIsExplainedAndItsValueNamed) {
  each(app_, "qualify", [](const std::string& path, const CLI::App& app) {
    EXPECT_FALSE(app.get_description().empty()) << path;
    for (const CLI::Option* option : app.get_options()) {
      EXPECT_FALSE(option->get_description().empty()) << path << ' ' << option->get_name();
      EXPECT_NE(option->get_type_name(), "INT") << path << ' ' << option->get_name();
      if (!option->get_lnames().empty()) {
        EXPECT_NE(option->get_type_name(), "TEXT") << path << ' ' << option->get_name();
      }
    }
  });
}

TEST_F(Program, EveryCommandHasAManualText) {
  const auto program = cli::manual::read_commands(app_, COMMAND_TEXTS);
  EXPECT_FALSE(program.text.empty());
  for (const auto& command : program.commands) EXPECT_FALSE(command.text.empty()) << command.name;
}

}  // namespace
