#include "completions.hpp"

#include <functional>
#include <sstream>

namespace qualify::cli::manual {

namespace {

constexpr const char* kMade = "# Made from the program's own list of commands; do not edit.\n";

/// Calls `visit` for the command and all below it; `path` is "" for the program, "bundle seal".
void walk(const Command& command, const std::string& path,
          const std::function<void(const std::string&, const Command&)>& visit) {
  visit(path, command);
  for (const Command& sub : command.commands) {
    walk(sub, path.empty() ? sub.name : path + ' ' + sub.name, visit);
  }
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

bool takes_path(const Command& command) {
  for (const Option& argument : command.arguments) {
    if (argument.values == Values::path) return true;
  }
  return false;
}

/// What the program's own options are, they are everywhere: CLI11's fallthrough.
std::vector<Option> options_at(const Command& program, const Command& command) {
  std::vector<Option> options = command.options;
  if (&program == &command) return options;
  for (const Option& option : program.options) {
    if (option.names.front() != "--help" && option.names.front() != "--version") {
      options.push_back(option);
    }
  }
  return options;
}

/// A zsh function name for a path: "_qualify__bundle_seal".
std::string zsh_name(const Command& program, const std::string& path) {
  std::string name = "_" + program.name;
  if (!path.empty()) name += "__" + path;
  for (char& c : name) {
    if (c == ' ' || c == '-') c = '_';
  }
  return name;
}

/// Text inside the brackets of an _arguments specification.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(const Option& option) {
  switch (option.values) {
    case Values::path:
      return "_files";
    case Values::choice:
      return "(" + joined(option.choices, " ") + ")";
    default:
      return " ";
  }
}

}  // namespace

std::string bash_completion(const Command& program) {
  std::ostringstream out;
  out << kMade << "_" << program.name << "() {\n"
      << "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at='' word i\n"
      << "  local -a words=()\n"
      << "  COMPREPLY=()\n"
      << "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      << "    word=${COMP_WORDS[i]}\n"
      << "    case \"${at:+$at }$word\" in\n";
  walk(program, "", [&](const std::string& path, const Command&) {
    if (!path.empty()) out << "      " << quoted(path) << ") at=" << quoted(path) << " ;;\n";
  });
  out << "    esac\n  done\n  case \"$at:$prev\" in\n";
  walk(program, "", [&](const std::string& path, const Command& command) {
    for (const Option& option : options_at(program, command)) {
      if (option.values == Values::none) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) patterns.push_back(quoted(path + ":" + name));
      out << "    " << joined(patterns, " | ") << ")\n";
      if (option.values == Values::choice) {
        out << "      mapfile -t COMPREPLY < <(compgen -W " << quoted(joined(option.choices, " "))
            << " -- \"$cur\")\n";
      } else if (option.values == Values::path) {
        out << "      mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n";
      }
      out << "      return ;;\n";
    }
  });
  out << "  esac\n  case $at in\n";
  walk(program, "", [&](const std::string& path, const Command& command) {
    std::vector<std::string> words;
    for (const Command& sub : command.commands) words.push_back(sub.name);
    for (const Option& argument : command.arguments) {
      words.insert(words.end(), argument.choices.begin(), argument.choices.end());
    }
    std::vector<std::string> flags;
    for (const Option& option : options_at(program, command)) {
      flags.insert(flags.end(), option.names.begin(), option.names.end());
    }
    out << "    " << quoted(path) << ")\n      if [[ $cur == -* ]]; then words=("
        << joined(flags, " ") << "); else words=(" << joined(words, " ") << "); fi\n";
    if (takes_path(command)) {
      out << "      [[ $cur == -* ]] || mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n";
    }
    out << "      ;;\n";
  });
  out << "  esac\n"
      << "  mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W \"${words[*]}\" -- \"$cur\")\n"
      << "}\n"
      << "complete -o filenames -F _" << program.name << ' ' << program.name << '\n';
  return out.str();
}

std::string zsh_completion(const Command& program) {
  std::ostringstream out;
  out << "#compdef " << program.name << '\n' << kMade;
  walk(program, "", [&](const std::string& path, const Command& command) {
    out << '\n'
        << zsh_name(program, path) << "() {\n  local context state state_descr line\n"
        << "  typeset -A opt_args\n  _arguments -C";
    for (const Option& option : options_at(program, command)) {
      for (const std::string& name : option.names) {
        std::string spec = (option.repeated ? "*" : "") + name + "[" + zsh_text(option.about) + "]";
        if (option.values != Values::none) {
          spec += ":" + zsh_text(option.value_name) + ":" + zsh_action(option);
        }
        out << " \\\n    " << quoted(spec);
      }
    }
    for (const Option& argument : command.arguments) {
      out << " \\\n    "
          << quoted((argument.repeated   ? "*:"
                     : argument.required ? ":"
                                         : "::") +
                    zsh_text(argument.value_name) + ":" + zsh_action(argument));
    }
    if (command.commands.empty()) {
      out << "\n}\n";
      return;
    }
    out << " \\\n    '1:command:->command' \\\n    '*::argument:->argument'\n"
        << "  case $state in\n    command)\n      local -a commands=(";
    for (const Command& sub : command.commands) {
      out << "\n        " << quoted(sub.name + ":" + sub.about);
    }
    out << "\n      )\n      _describe command commands ;;\n    argument)\n      case $line[1] "
           "in\n";
    for (const Command& sub : command.commands) {
      out << "        " << sub.name << ") "
          << zsh_name(program, path.empty() ? sub.name : path + ' ' + sub.name) << " ;;\n";
    }
    out << "      esac ;;\n  esac\n}\n";
  });
  // Autoloaded, the file's body is the function's first call; sourced, it only registers.
  out << "\nif [[ $funcstack[1] == _" << program.name << " ]]; then\n  _" << program.name
      << " \"$@\"\nelse\n  compdef _" << program.name << ' ' << program.name << "\nfi\n";
  return out.str();
}

std::string fish_completion(const Command& program) {
  const std::string at = "__" + program.name + "_at";
  std::ostringstream out;
  out << kMade << "# True when the commands typed so far are exactly these.\nfunction " << at
      << "\n    set -l at\n    for word in (commandline -opc)[2..-1]\n"
      << "        switch \"$at $word\"\n";
  walk(program, "", [&](const std::string& path, const Command&) {
    if (path.empty()) return;
    out << "            case " << quoted(" " + path) << "\n                set at "
        << quoted(" " + path) << '\n';
  });
  out << "        end\n    end\n    test \"$at\" = \"$argv[1]\"\nend\n";
  walk(program, "", [&](const std::string& path, const Command& command) {
    const std::string here = path.empty() ? "" : " " + path;
    const std::string rule =
        "complete -c " + program.name + " -n " + quoted(at + " \"" + here + "\"");
    if (!takes_path(command)) out << rule << " -f\n";
    for (const Command& sub : command.commands) {
      out << rule << " -a " << quoted(sub.name) << " -d " << quoted(sub.about) << '\n';
    }
    for (const Option& argument : command.arguments) {
      if (!argument.choices.empty()) {
        out << rule << " -a " << quoted(joined(argument.choices, " ")) << '\n';
      }
    }
    for (const Option& option : options_at(program, command)) {
      out << rule;
      for (const std::string& name : option.names) {
        out << (name[1] == '-' ? " -l " + name.substr(2) : " -s " + name.substr(1));
      }
      if (option.values == Values::path) {
        out << " -rF";
      } else if (option.values == Values::choice) {
        out << " -x -a " << quoted(joined(option.choices, " "));
      } else if (option.values == Values::any) {
        out << " -x";
      }
      out << " -d " << quoted(option.about) << '\n';
    }
  });
  return out.str();
}

}  // namespace qualify::cli::manual
