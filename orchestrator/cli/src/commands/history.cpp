#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "../commands.hpp"
#include "../event_text.hpp"
#include "../table.hpp"
#include "qualify/run/progress.hpp"

namespace qualify::cli {

namespace {

struct Options {
  std::string gate;
  bool json = false;
};

Result<std::vector<journal::Event>> load(run::State& state, const std::string& gate) {
  const journal::Journal journal(state.database);
  if (gate.empty()) return journal.events();
  const auto names = journal.qualifications(gate);
  if (!names) return tl::unexpected(names.error());
  std::vector<journal::Event> all;
  for (const std::string& name : *names) {
    auto events = journal.events(name);
    if (!events) return events;
    all.insert(all.end(), std::make_move_iterator(events->begin()),
               std::make_move_iterator(events->end()));
  }
  return all;
}

Result<Exit> run_history(Session& session, const Options& options) {
  auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  const auto events = load(*state, options.gate);
  if (!events) return tl::unexpected(events.error());
  if (options.json) {
    Json list = Json::array();
    for (const journal::Event& event : *events) {
      auto payload = parse_json(event.payload, "event " + std::to_string(event.sequence));
      if (!payload) return tl::unexpected(payload.error());
      list.push_back({{"sequence", event.sequence},
                      {"time", format_time(event.time)},
                      {"qualification",
                       event.qualification.empty() ? Json(nullptr) : Json(event.qualification)},
                      {"run", event.run.empty() ? Json(nullptr) : Json(event.run)},
                      {"attempt", event.attempt == 0 ? Json(nullptr) : Json(event.attempt)},
                      {"kind", event.kind},
                      {"payload", std::move(*payload)}});
    }
    session.print_json({{"events", std::move(list)}});
    return Exit::ok;
  }
  if (events->empty()) {
    session.out << "Nothing has happened yet.\n";
    return Exit::ok;
  }
  Table table({"TIME (UTC)", "OF", "WHAT"});
  for (const journal::Event& event : *events) {
    const std::string time = format_time(event.time);
    table.add({time.substr(0, 10) + " " + time.substr(11, 8), printable(event.qualification),
               event_text(event)});
  }
  table.print(session.out, session.width);
  return Exit::ok;
}

}  // namespace

void add_history(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("history", "Everything that happened, in order");
  command->add_option("GATE", options->gate, "Only this gate");
  command->add_flag("--json", options->json, "Print one JSON record");
  command->callback([&session, options] { session.finish(run_history(session, *options)); });
}

}  // namespace qualify::cli
