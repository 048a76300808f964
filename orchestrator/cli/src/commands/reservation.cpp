#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "../commands.hpp"
#include "../granting.hpp"
#include "../table.hpp"
#include "qualify/run/baselines.hpp"

namespace qualify::cli {

namespace {

struct Options {
  std::string name;
  std::string gate;
  std::string bundle;
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
  auto state = open_state(session);
  if (!state) return tl::unexpected(state.error());
  const auto scheduler = open_scheduler(session, options.name);
  if (!scheduler) return tl::unexpected(scheduler.error());
  const auto reservation = find_reservation(**scheduler, options.name);
  if (!reservation) return tl::unexpected(reservation.error());
  const auto record = record_grant(session, *state, gate->name, **scheduler, *reservation);
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

/// The bundle that is named, or the one sealed last.
Result<store::Bundle> bundle_for_check(const run::State& state, const std::string& name) {
  if (!name.empty()) {
    const auto digest = store::resolve(state.bundles, name);
    if (!digest) return tl::unexpected(digest.error());
    return store::load(state.bundles, *digest);
  }
  auto bundles = store::list(state.bundles);
  if (!bundles) return tl::unexpected(bundles.error());
  if (bundles->empty()) {
    return fail(Errc::not_found,
                "no bundle is sealed, so that nothing says how many nodes it needs", {},
                "qualify bundle seal bundle.yaml");
  }
  return std::move(bundles->back());
}

/// Who may use a reservation is the scheduler's to say, which it does once it is active.
Result<std::optional<scheduler::Fault>> check_access(scheduler::Scheduler& scheduler,
                                                     const Session& session, const plan::Plan& plan,
                                                     const scheduler::Grant& grant) {
  scheduler::JobRequest request;
  request.nonce = "check";
  request.name = "qualify:" + plan.gate + ":check";
  request.executable = session.executable.string();
  request.folder = std::filesystem::absolute(session.folder).string();
  request.plan_file = request.folder + "/job-plan.json";
  request.nodes = plan.topology.nodes;
  request.tasks_per_node = plan.tasks_per_node;
  request.gpus_per_node = plan.topology.gpus_per_node;
  request.reservation = plan.reservation;
  request.partition = grant.reservation.partition;
  request.time_limit = plan.run_limit;
  request.deadline = grant.reservation.end;
  const auto accepted = scheduler.would_accept(request);
  if (accepted) return std::optional<scheduler::Fault>();
  if (accepted.error().code != Errc::refused) return tl::unexpected(accepted.error());
  return scheduler::Fault{"access", accepted.error().message, false};
}

/// The whole preflight of `run`, with everything that stands against a start. Starts nothing.
Result<Exit> run_check(Session& session, const Options& options) {
  const auto gate = find_gate(session, options.file, options.gate);
  if (!gate) return tl::unexpected(gate.error());
  auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  const auto bundle = bundle_for_check(*state, options.bundle);
  if (!bundle) return tl::unexpected(bundle.error());
  const auto scheduler = open_scheduler(session, options.name);
  if (!scheduler) return tl::unexpected(scheduler.error());
  const auto snapshot = scheduler::take_snapshot(**scheduler);
  if (!snapshot) return tl::unexpected(snapshot.error());
  const auto granted = current_grant(*state, gate->name, options.name);
  if (!granted) return tl::unexpected(granted.error());

  std::vector<scheduler::Fault> faults;
  scheduler::Grant grant;
  if (*granted) {
    grant = **granted;
  } else {
    const auto found = find_reservation(**scheduler, options.name);
    if (!found) return tl::unexpected(found.error());
    grant = {gate->name, (*scheduler)->kind(), *found, session.user, session.clock.now()};
    faults.push_back({"not-granted", "the reservation is not granted to gate " + gate->name, true});
  }
  const auto plan = run::plan_gate(*state, *gate, *bundle, grant);
  if (!plan) return tl::unexpected(plan.error());
  const auto needed = plan::requirement(*plan, 0, plan::stages(*gate, *plan).front());
  auto against = scheduler::preflight(grant, needed, *snapshot, {});
  if (against.empty()) {
    auto denied = check_access(**scheduler, session, *plan, grant);
    if (!denied) return tl::unexpected(denied.error());
    if (*denied) against.push_back(std::move(**denied));
  }
  std::move(against.begin(), against.end(), std::back_inserter(faults));
  if (options.json) {
    Json list = Json::array();
    for (const scheduler::Fault& fault : faults) {
      list.push_back(
          {{"code", fault.code}, {"message", fault.message}, {"may_pass", fault.may_pass}});
    }
    session.print_json({{"reservation", options.name},
                        {"gate", gate->name},
                        {"bundle", bundle->digest.str()},
                        {"controller_time", format_time(snapshot->now)},
                        {"faults", std::move(list)}});
  } else if (faults.empty()) {
    session.out << "Reservation " << printable(options.name) << " is ready for gate " << gate->name
                << ": nothing stands against a start.\n";
  } else {
    session.out << "Reservation " << printable(options.name) << " is not ready for gate "
                << gate->name << ":\n";
    for (const scheduler::Fault& fault : faults) {
      session.out << "  - ";
      print_wrapped(session.out, fault.message + (fault.may_pass ? " (may pass)" : ""), 4,
                    session.width);
    }
  }
  return faults.empty() ? Exit::ok : Exit::undecided;
}

Result<Exit> run_revoke(Session& session, const Options& options) {
  auto state = open_state(session);
  if (!state) return tl::unexpected(state.error());
  const auto count = revoke_grants(session, *state, options.gate, options.name);
  if (!count) return tl::unexpected(count.error());
  if (*count == 0) {
    return fail(Errc::not_found,
                "reservation '" + options.name + "' is not granted to gate '" + options.gate + "'");
  }
  if (options.json) {
    session.print_json(
        {{"reservation", options.name}, {"gate", options.gate}, {"revoked", *count}});
    return Exit::ok;
  }
  session.out << "Revoked " << *count << (*count == 1 ? " grant" : " grants") << " of reservation "
              << printable(options.name) << " to gate " << printable(options.gate)
              << ". Nothing more starts there; what runs is not touched.\n";
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
  {
    auto options = std::make_shared<Options>();
    CLI::App* command =
        group->add_subcommand("check", "Say everything that stands against a start; start nothing");
    command->add_option("NAME", options->name, "Reservation")->required();
    command->add_option("--gate", options->gate, "Gate")->type_name("GATE")->required();
    command
        ->add_option("-b,--bundle", options->bundle,
                     "Digest, its beginning, or name (default: the one sealed last)")
        ->type_name("BUNDLE");
    command->add_option("-f,--file", options->file, "File of gates (qualification.yaml)")
        ->type_name("FILE");
    command->add_flag("--json", options->json, "Print one JSON record");
    command->callback([&session, options] { session.finish(run_check(session, *options)); });
  }
  {
    auto options = std::make_shared<Options>();
    CLI::App* command = group->add_subcommand("revoke", "Take a grant back (signed)");
    command->add_option("NAME", options->name, "Reservation")->required();
    command->add_option("--gate", options->gate, "Gate")->type_name("GATE")->required();
    command->add_flag("--json", options->json, "Print one JSON record");
    command->callback([&session, options] { session.finish(run_revoke(session, *options)); });
  }
}

}  // namespace qualify::cli
