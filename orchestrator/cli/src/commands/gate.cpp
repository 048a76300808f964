#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "../commands.hpp"
#include "../gate_text.hpp"
#include "../table.hpp"

namespace qualify::cli {

namespace {

struct Options {
  std::string gate;
  std::string file;  ///< empty: qualification.yaml
  bool json = false;
};

Json brief(const policy::Gate& gate) {
  return {{"name", gate.name},
          {"kind", policy::name_of(gate.kind)},
          {"description", gate.description},
          {"policy", policy::policy_digest(gate).str()},
          {"runs", run_count(gate)},
          {"schedule", gate.schedule.empty() ? Json(nullptr) : Json(gate.schedule)}};
}

Result<Exit> run_list(Session& session, const Options& options) {
  const auto all = read_gates(session, options.file);
  if (!all) return tl::unexpected(all.error());
  if (options.json) {
    Json gates = Json::array();
    for (const policy::Gate& gate : all->gates) gates.push_back(brief(gate));
    session.print_json({{"gates", std::move(gates)}});
    return Exit::ok;
  }
  Table table({"GATE", "KIND", "RUNS", "DESCRIPTION"});
  for (const policy::Gate& gate : all->gates) {
    const std::size_t runs = run_count(gate);
    table.add({gate.name, policy::name_of(gate.kind), runs == 0 ? "-" : std::to_string(runs),
               gate.description});
  }
  table.print(session.out, session.width);
  return Exit::ok;
}

Result<Exit> run_explain(Session& session, const Options& options) {
  const auto gate = find_gate(session, options.file, options.gate);
  if (!gate) return tl::unexpected(gate.error());
  const GateText text = describe(*gate);
  if (options.json) {
    Json record = brief(*gate);
    record["asks"] = text.asks;
    record["needs"] = text.runs;
    record["closes"] = text.closes;
    record["gate"] = to_json(*gate);
    session.print_json(std::move(record));
    return Exit::ok;
  }
  session.out << "Gate " << gate->name << " (" << policy::name_of(gate->kind) << ")\n";
  const auto paragraph = [&](const std::string& label, const std::string& words) {
    session.out << label << std::string(10 - label.size(), ' ');
    print_wrapped(session.out, printable(words), 10, session.width);
  };
  if (!gate->description.empty()) paragraph("", gate->description);
  for (std::size_t i = 0; i < text.asks.size(); ++i) {
    paragraph(i == 0 ? "  asks" : "", text.asks[i]);
  }
  paragraph("  runs", text.runs);
  paragraph("  closes", "when " + text.closes);
  if (!gate->schedule.empty()) {
    paragraph("  due", gate->schedule + " (" + gate->time_zone + "), once armed");
  }
  paragraph("  policy", policy::policy_digest(*gate).str());
  return Exit::ok;
}

}  // namespace

void add_gate(CLI::App& app, Session& session) {
  CLI::App* group = app.add_subcommand("gate", "What the gates of a file ask: list, explain");
  group->require_subcommand(1);
  const auto add = [&](const char* name, const char* text,
                       Result<Exit> (*action)(Session&, const Options&)) {
    auto options = std::make_shared<Options>();
    CLI::App* command = group->add_subcommand(name, text);
    command->add_option("-f,--file", options->file, "File of gates (qualification.yaml)")
        ->type_name("FILE");
    command->add_flag("--json", options->json, "Print one JSON record");
    command->callback([&session, options, action] { session.finish(action(session, *options)); });
    return std::pair(command, options);
  };
  (void)add("list", "The gates that are declared", run_list);
  const auto [command, options] = add("explain", "One gate in words", run_explain);
  command->add_option("GATE", options->gate, "Gate of qualification.yaml")->required();
}

}  // namespace qualify::cli
