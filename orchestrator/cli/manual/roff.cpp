#include "roff.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace qualify::cli::manual {

namespace {

/// `code` and **strong** of one paragraph as bold, the rest escaped.
std::string inline_markup(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const bool strong = text.substr(0, 2) == "**";
    const std::string_view mark = strong ? "**" : "`";
    if (strong || text.front() == '`') {
      const auto end = text.find(mark, mark.size());
      if (end != std::string_view::npos) {
        out += "\\fB" + roff_escape(text.substr(mark.size(), end - mark.size())) + "\\fP";
        text.remove_prefix(end + mark.size());
        continue;
      }
    }
    const auto next = std::min(text.find('`', 1), text.find("**", 1));
    out += roff_escape(text.substr(0, next));
    text.remove_prefix(std::min(next, text.size()));
  }
  return out;
}

/// A line that starts with a dot or an apostrophe would be taken for a request.
std::string text_line(const std::string& line) {
  return !line.empty() && (line[0] == '.' || line[0] == '\'') ? "\\&" + line : line;
}

std::string signature(const std::string& path, const Command& command) {
  std::string line = "\\fB" + roff_escape(path) + "\\fP";
  for (const Option& option : command.options) {
    if (!option.required) continue;
    line += " \\fB" + roff_escape(option.names.front()) + "\\fP \\fI" +
            roff_escape(option.value_name) + "\\fP";
  }
  const bool optional = std::any_of(command.options.begin(), command.options.end(),
                                    [](const Option& option) { return !option.required; });
  if (optional) line += " [\\fIoptions\\fP]";
  for (const Option& argument : command.arguments) {
    const std::string name =
        "\\fI" + roff_escape(argument.value_name) + "\\fP" + (argument.repeated ? "\\&..." : "");
    line += argument.required ? " " + name : " [" + name + "]";
  }
  if (!command.commands.empty()) line += " \\fIcommand\\fP";
  return line;
}

void put_option(std::ostream& out, const Option& option) {
  out << ".TP\n";
  std::string line;
  for (const std::string& name : option.names) {
    line += (line.empty() ? "" : ", ") + ("\\fB" + roff_escape(name) + "\\fP");
  }
  if (option.values != Values::none) {
    line += (line.empty() ? "\\fI" : " \\fI") + roff_escape(option.value_name) + "\\fP";
  }
  out << text_line(line) << '\n' << text_line(inline_markup(option.about));
  if (!option.choices.empty()) {
    out << (option.about.empty() ? "" : ". ") << "One of";
    for (std::size_t i = 0; i < option.choices.size(); ++i) {
      out << (i == 0 ? " " : ", ") << "\\fB" << roff_escape(option.choices[i]) << "\\fP";
    }
  }
  out << '\n';
}

void put_command(std::ostream& out, const std::string& path, const Command& command) {
  out << ".SS " << signature(path, command) << '\n'
      << text_line(inline_markup(command.about)) << ".\n";
  if (!command.text.empty()) out << roff_of_markdown(command.text);
  for (const Option& argument : command.arguments) put_option(out, argument);
  for (const Option& option : command.options) {
    if (option.names.front() != "--help") put_option(out, option);
  }
  for (const Command& sub : command.commands) put_command(out, path + ' ' + sub.name, sub);
}

}  // namespace

std::string roff_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;  // a minus that can be copied, not a hyphen
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '\'':
        out += "\\(aq";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string roff_of_markdown(std::string_view markdown) {
  std::istringstream lines{std::string(markdown)};
  std::ostringstream out;
  std::string paragraph;
  bool code = false;
  bool item = false;
  const auto flush = [&] {
    if (!paragraph.empty()) {
      out << (item ? ".IP \\(bu 2\n" : ".PP\n") << text_line(inline_markup(paragraph)) << '\n';
    }
    paragraph.clear();
    item = false;
  };
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      flush();
      out << (code ? ".fi\n.RE\n" : ".PP\n.RS 4\n.nf\n");
      code = !code;
    } else if (code) {
      out << text_line(roff_escape(line)) << '\n';
    } else if (line.empty()) {
      flush();
    } else if (line.starts_with('#')) {
      flush();
      out << ".PP\n\\fB" << roff_escape(line.substr(line.find_first_not_of("# "))) << "\\fP\n";
    } else if (line.starts_with("- ")) {
      flush();
      item = true;
      paragraph = line.substr(2);
    } else {
      const auto start = line.find_first_not_of(' ');
      paragraph += (paragraph.empty() ? "" : " ") + line.substr(std::min(start, line.size()));
    }
  }
  flush();
  return out.str();
}

std::string manual_page(const Command& program, std::string_view version) {
  std::string upper = program.name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::ostringstream out;
  out << ".\\\" Made from the program's own list of commands; do not edit.\n"
      << ".TH " << upper << " 1 \"\" \"" << program.name << ' ' << version
      << "\" \"User Commands\"\n"
      << ".SH NAME\n"
      << program.name << " \\- " << roff_escape(program.about) << '\n'
      << ".SH SYNOPSIS\n"
      << signature(program.name, program) << '\n';
  if (!program.text.empty()) {
    std::string text = roff_of_markdown(program.text);
    if (text.starts_with(".PP\n")) text.erase(0, 4);  // a heading begins a paragraph by itself
    out << ".SH DESCRIPTION\n" << text;
  }
  out << ".SH OPTIONS\n";
  for (const Option& option : program.options) put_option(out, option);
  out << ".SH COMMANDS\n";
  for (const Command& command : program.commands) {
    put_command(out, program.name + ' ' + command.name, command);
  }
  out << ".SH EXIT STATUS\n"
      << ".TP\n0\npass, equal, done\n"
      << ".TP\n1\nfail, differs\n"
      << ".TP\n2\nusage, bad input, or a file that cannot be read or written\n"
      << ".TP\n3\ninconclusive, needs a decision, blocked or refused\n"
      << ".TP\n4\nscheduler or system unavailable\n"
      << ".TP\n5\nintegrity fault\n"
      << ".TP\n130\nstopped by Ctrl\\-C\n";
  return out.str();
}

}  // namespace qualify::cli::manual
