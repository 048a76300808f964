#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "../commands.hpp"
#include "../granting.hpp"
#include "../table.hpp"

namespace qualify::cli {

namespace {

struct Options {
  std::string name;
  std::string gate;
  std::string file;
  bool json = false;
};

Result<Exit> run_list(Session& session, const Options& options) {
  const auto scheduler = open_scheduler(session, "any");
  if (!scheduler) return tl::unexpected(scheduler.error());
  const auto reservations = (*scheduler)->reservations();
  if (!reservations) return tl::unexpected(reservations.error());
  if (options.json) {
    Json list = Json::array();
    for (const auto& reservation : *reservations) {
      Json entry = to_json(reservation);
      entry["fingerprint"] = fingerprint(reservation).str();
      list.push_back(std::move(entry));
    }
    session.print_json({{"reservations", std::move(list)}});
    return Exit::ok;
  }
  Table table({"RESERVATION", "NODES", "START", "END", "FLAGS"});
  for (const auto& reservation : *reservations) {
    std::string flags;
    for (const std::string& flag : reservation.flags) flags += (flags.empty() ? "" : ",") + flag;
    table.add({reservation.name, std::to_string(reservation.node_count),
               format_time(reservation.start).substr(0, 16),
               format_time(reservation.end).substr(0, 16), flags});
  }
  if (table.empty()) {
    session.out << "No reservation is visible to you.\n";
  } else {
    table.print(session.out, session.width);
  }
  return Exit::ok;
}

Result<Exit> run_grant(Session& session, const Options& options) {
  const auto gate = find_gate(session, options.file, options.gate);
  if (!gate) return tl::unexpected(gate.error());
  auto state = run::open_state(session.state_folder());
  if (!state) return tl::unexpected(state.error());
  const auto scheduler = open_scheduler(session, options.name);
  if (!scheduler) return tl::unexpected(scheduler.error());
  const auto reservation = find_reservation(**scheduler, options.name);
  if (!reservation) return tl::unexpected(reservation.error());
  const auto record = record_grant(session, *state, gate->name, (*scheduler)->kind(), *reservation);
  if (!record) return tl::unexpected(record.error());
  if (options.json) {
    session.print_json({{"grant", record->id},
                        {"gate", gate->name},
                        {"reservation", to_json(*reservation)},
                        {"fingerprint", fingerprint(*reservation).str()}});
    return Exit::ok;
  }
  session.out << "Granted reservation " << printable(reservation->name) << " ("
              << reservation->node_count << " nodes, fingerprint "
              << fingerprint(*reservation).brief() << ") to gate " << gate->name << ".\n";
  return Exit::ok;
}

}  // namespace

void add_reservation(CLI::App& app, Session& session) {
  CLI::App* group = app.add_subcommand("reservation", "List reservations, grant them to gates");
  group->require_subcommand(1);
  {
    auto options = std::make_shared<Options>();
    CLI::App* command = group->add_subcommand("list", "Reservations that the controller shows you");
    command->add_flag("--json", options->json, "Print one JSON record");
    command->callback([&session, options] { session.finish(run_list(session, *options)); });
  }
  {
    auto options = std::make_shared<Options>();
    CLI::App* command =
        group->add_subcommand("grant", "Assign a reservation, as it is now, to a gate (signed)");
    command->add_option("NAME", options->name, "Reservation")->required();
    command->add_option("--gate", options->gate, "Gate")->type_name("GATE")->required();
    command->add_option("-f,--file", options->file, "File of gates (qualification.yaml)")
        ->type_name("FILE");
    command->add_flag("--json", options->json, "Print one JSON record");
    command->callback([&session, options] { session.finish(run_grant(session, *options)); });
  }
}

}  // namespace qualify::cli
