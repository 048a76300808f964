#include "help.hpp"

#include <CLI/CLI.hpp>
#include <sstream>

#include "table.hpp"

namespace qualify::cli {

namespace {

constexpr int kWidth = 80;
constexpr int kColumn = 30;  // where descriptions begin

std::string entry(const std::string& left, const std::string& description) {
  std::ostringstream out;
  out << "  " << left;
  const int used = static_cast<int>(left.size()) + 2;
  if (used + 1 > kColumn) {
    out << '\n' << std::string(kColumn, ' ');
  } else {
    out << std::string(static_cast<std::size_t>(kColumn - used), ' ');
  }
  print_wrapped(out, description, kColumn, kWidth);
  return out.str();
}

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool positional) const override {
    return entry(make_option_name(option, positional) + make_option_opts(option),
                 make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return entry(command->get_name(), command->get_description());
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    const bool argument = option->get_lnames().empty() && option->get_snames().empty();
    std::string text;
    if (!argument && option->get_type_size() != 0) text += " " + option->get_type_name();
    if (!argument && option->get_required()) text += " (required)";
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
    return text;
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() {
  return std::make_shared<HelpFormatter>();
}

}  // namespace qualify::cli
