#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <ranges>

#include "../commands.hpp"
#include "../table.hpp"
#include "qualify/run/baselines.hpp"

namespace qualify::cli {

namespace {

using run::Baseline;

struct Options {
  std::string name;
  std::string certificate;
  bool json = false;
};

Json to_json(const Baseline& baseline) {
  return {{"name", baseline.name},   {"certificate", baseline.certificate},
          {"gate", baseline.gate},   {"bundle", baseline.bundle.str()},
          {"run", baseline.run},     {"evidence", baseline.evidence.str()},
          {"set_by", baseline.user}, {"time", format_time(baseline.time)}};
}

std::string brief_time(Time time) {
  return format_time(time).substr(0, 19) + "Z";
}

Result<Exit> run_set(Session& session, const Options& options) {
  auto state = open_state(session);
  if (!state) return tl::unexpected(state.error());
  const auto baseline = run::set_baseline(*state, options.name, options.certificate, session.user,
                                          session.clock.now());
  if (!baseline) return tl::unexpected(baseline.error());
  if (options.json) {
    session.print_json(to_json(*baseline));
    return Exit::ok;
  }
  session.out << "Baseline " << baseline->name << " is certificate "
              << baseline->certificate.substr(0, 12) << " of gate " << printable(baseline->gate)
              << ", bundle " << baseline->bundle.brief() << "\nNext: qualify compare --baseline "
              << baseline->name << " RUN\n";
  return Exit::ok;
}

Result<Exit> run_show(Session& session, const Options& options) {
  auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  const auto current = run::find_baseline(*state, options.name);
  if (!current) return tl::unexpected(current.error());
  auto all = run::all_baselines(*state);
  if (!all) return tl::unexpected(all.error());
  std::erase_if(*all, [&](const Baseline& each) { return each.name != options.name; });
  all->pop_back();  // the current one
  if (options.json) {
    Json json = to_json(*current);
    json["earlier"] = Json::array();
    for (const Baseline& each : *all) json["earlier"].push_back(to_json(each));
    session.print_json(std::move(json));
    return Exit::ok;
  }
  Table table({"baseline", current->name});
  table.add({"certificate", current->certificate});
  table.add({"gate", current->gate});
  table.add({"bundle", current->bundle.str()});
  table.add({"run", current->run});
  table.add({"evidence", current->evidence.str()});
  table.add({"set", brief_time(current->time) + " by " + current->user});
  for (const auto& each : std::views::reverse(*all)) {
    table.add({"before", "certificate " + each.certificate.substr(0, 12) + ", bundle " +
                             each.bundle.brief() + ", set " + brief_time(each.time) + " by " +
                             each.user});
  }
  table.print(session.out, session.width);
  return Exit::ok;
}

Result<Exit> run_list(Session& session, const Options& options) {
  auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  const auto all = run::all_baselines(*state);
  if (!all) return tl::unexpected(all.error());
  std::map<std::string, Baseline> current;
  for (const Baseline& each : *all) current[each.name] = each;
  if (options.json) {
    Json list = Json::array();
    for (const auto& [name, each] : current) list.push_back(to_json(each));
    session.print_json({{"baselines", std::move(list)}});
    return Exit::ok;
  }
  if (current.empty()) {
    session.out << "No baseline has been set yet.\n"
                   "Next: qualify baseline set NAME CERTIFICATE\n";
    return Exit::ok;
  }
  Table table({"BASELINE", "CERTIFICATE", "BUNDLE", "SET", "GATE"});
  for (const auto& [name, each] : current) {
    table.add({name, each.certificate.substr(0, 12), each.bundle.brief(),
               brief_time(each.time).substr(0, 10), each.gate});
  }
  table.print(session.out, session.width);
  return Exit::ok;
}

}  // namespace

void add_baseline(CLI::App& app, Session& session) {
  CLI::App* group =
      app.add_subcommand("baseline", "Name what later runs must equal: set, show, list");
  group->require_subcommand(1);
  const auto add = [&](const char* name, const char* text,
                       Result<Exit> (*action)(Session&, const Options&)) {
    auto options = std::make_shared<Options>();
    CLI::App* command = group->add_subcommand(name, text);
    command->add_flag("--json", options->json, "Print one JSON record");
    command->callback([&session, options, action] { session.finish(action(session, *options)); });
    return std::pair(command, options);
  };
  {
    const auto [command, options] =
        add("set", "Bind a name to a certificate, signed and on the record", run_set);
    command->add_option("NAME", options->name, "Name of the baseline")->required();
    command->add_option("CERTIFICATE", options->certificate, "Certificate id or its beginning")
        ->required();
  }
  {
    const auto [command, options] = add("show", "One baseline, and what it was before", run_show);
    command->add_option("NAME", options->name, "Name of the baseline")->required();
  }
  (void)add("list", "Baselines of this state", run_list);
}

}  // namespace qualify::cli
