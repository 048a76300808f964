#include <CLI/CLI.hpp>
#include <memory>

#include "../commands.hpp"
#include "../gate_options.hpp"
#include "../granting.hpp"
#include "../table.hpp"
#include "qualify/daemon/arming.hpp"
#include "qualify/recurrence/recurrence.hpp"
#include "qualify/run/baselines.hpp"
#include "qualify/store/bundle.hpp"

namespace qualify::cli {

namespace {

/// The grant as it is now; of a gate with a schedule it may come later, for each occurrence its
/// own.
Result<std::optional<scheduler::Grant>> grant_to_plan_by(Session& session, run::State& state,
                                                         const policy::Gate& gate,
                                                         const std::string& reservation) {
  if (reservation == "local") {
    const auto scheduler = open_scheduler(session, reservation);
    if (!scheduler) return tl::unexpected(scheduler.error());
    auto machine = find_reservation(**scheduler, reservation);
    if (!machine) return tl::unexpected(machine.error());
    return std::optional(scheduler::Grant{gate.name, (*scheduler)->kind(), std::move(*machine),
                                          session.user, session.clock.now()});
  }
  auto grant = current_grant(state, gate.name, reservation);
  if (!grant || *grant || !gate.schedule.empty()) return grant;
  return fail(Errc::refused,
              "reservation '" + reservation + "' is not granted to gate '" + gate.name + "'", {},
              "qualify reservation grant " + reservation + " --gate " + gate.name);
}

void say_next(Session& session, const policy::Gate& gate, const char* what, Time since) {
  const auto recurrence = recurrence::Recurrence::parse(gate.schedule, gate.time_zone);
  if (!recurrence) return;  // it was read from the file of gates, which refuses those
  session.out << "qualify daemon " << what << " it at each '" << gate.schedule << "' ("
              << gate.time_zone << "), next " << recurrence->local(recurrence->next_after(since))
              << ".\n";
}

/// A gate that rests on others: each time that it is due it is judged by what they came to.
Result<Exit> arm_composite(Session& session, const policy::Gate& gate, const GateOptions& options) {
  if (!options.bundle.empty() || !options.reservation.empty()) {
    return fail(Errc::usage,
                std::string("gate '") + gate.name + "' is of kind " + policy::name_of(gate.kind) +
                    " and has no runs: it takes no bundle and no reservation",
                {}, "qualify arm " + gate.name);
  }
  if (gate.schedule.empty()) {
    return fail(Errc::usage, "gate '" + gate.name + "' has no schedule, and nothing to wait for",
                {}, "judge it now: qualify run " + gate.name);
  }
  auto state = open_state(session);
  if (!state) return tl::unexpected(state.error());
  daemon::Armed wanted;
  wanted.gate = gate;
  wanted.file = std::filesystem::absolute(
                    session.folder / (options.file.empty() ? "qualification.yaml" : options.file))
                    .lexically_normal()
                    .string();
  wanted.by = session.user;
  wanted.since = session.clock.now();
  wanted.schedule = gate.schedule;
  wanted.time_zone = gate.time_zone;
  if (const auto armed = daemon::arm(state->database, wanted); !armed) {
    return tl::unexpected(armed.error());
  }
  session.out << "Armed gate " << gate.name << ", by " << printable(wanted.file) << ".\n";
  say_next(session, gate, "judges", wanted.since);
  return Exit::ok;
}

Result<Exit> run_arm(Session& session, const GateOptions& options) {
  const auto gate = find_gate(session, options.file, options.gate);
  if (!gate) return tl::unexpected(gate.error());
  if (policy::is_composite(gate->kind)) return arm_composite(session, *gate, options);
  if (options.bundle.empty()) {
    return fail(Errc::usage, "gate '" + gate->name + "' runs a bundle: which one?", {},
                "qualify arm " + gate->name + " --bundle NAME");
  }
  auto state = open_state(session);
  if (!state) return tl::unexpected(state.error());
  const auto digest = store::resolve(state->bundles, options.bundle);
  if (!digest) return tl::unexpected(digest.error());
  const auto bundle = store::load(state->bundles, *digest);
  if (!bundle) return tl::unexpected(bundle.error());
  const bool recurrent = !gate->schedule.empty();
  if (options.reservation.empty() && !recurrent) {
    return fail(Errc::usage, "gate '" + gate->name + "' has no schedule: name a reservation", {},
                "qualify arm " + gate->name + " --bundle " + options.bundle +
                    " --reservation NAME; or qualify run starts it on this machine now");
  }
  const std::string reservation = options.reservation.empty() ? "local" : options.reservation;
  const auto grant = grant_to_plan_by(session, *state, *gate, reservation);
  if (!grant) return tl::unexpected(grant.error());
  // What cannot be planned is said now, and not on Saturday night.
  if (*grant) {
    if (const auto plan = run::plan_gate(*state, *gate, *bundle, **grant); !plan) {
      return tl::unexpected(plan.error());
    }
  }
  daemon::Armed wanted;
  wanted.gate = *gate;
  wanted.bundle = *digest;
  wanted.reservation = reservation;
  wanted.by = session.user;
  wanted.since = session.clock.now();
  wanted.schedule = gate->schedule;
  wanted.time_zone = gate->time_zone;
  if (const auto armed = daemon::arm(state->database, wanted); !armed) {
    return tl::unexpected(armed.error());
  }
  session.out << "Armed gate " << gate->name << " with bundle " << digest->brief() << " on "
              << (reservation == "local" ? "this machine" : "reservation " + printable(reservation))
              << ".\n";
  if (!recurrent) {
    session.out << "qualify daemon launches it when the reservation is active and healthy.\n";
    return Exit::ok;
  }
  say_next(session, *gate, "launches", wanted.since);
  if (reservation != "local") {
    session.out << "Each needs a grant of the reservation as it is then:\n"
                << "  qualify reservation grant " << printable(reservation) << " --gate "
                << gate->name << '\n';
  }
  return Exit::ok;
}

struct DisarmOptions {
  std::string gate;
  std::string why;
};

Result<Exit> run_disarm(Session& session, const DisarmOptions& options) {
  auto state = open_state(session);
  if (!state) return tl::unexpected(state.error());
  const auto done =
      daemon::disarm(state->database, session.clock.now(), options.gate, session.user, options.why);
  if (!done) return tl::unexpected(done.error());
  session.out << "Disarmed gate " << printable(options.gate)
              << "; what runs already goes on (qualify cancel ends it).\n";
  return Exit::ok;
}

}  // namespace

void add_arm(CLI::App& app, Session& session) {
  auto options = std::make_shared<GateOptions>();
  CLI::App* command = app.add_subcommand(
      "arm", "Let the daemon launch a gate at its reservation's start, or schedule");
  add_gate_options(*command, *options);
  command->get_option("--bundle")
      ->required(false)
      ->description("Digest, its beginning, or name; none for coverage and enablement");
  command->get_option("--reservation")
      ->description("Slurm reservation (default, for a gate with a schedule: this machine)");
  command->remove_option(command->get_option("--json"));
  command->callback([&session, options] { session.finish(run_arm(session, *options)); });
}

void add_disarm(CLI::App& app, Session& session) {
  auto options = std::make_shared<DisarmOptions>();
  CLI::App* command = app.add_subcommand("disarm", "Take a gate's arming back");
  command->add_option("GATE", options->gate, "The gate")->required();
  command->add_option("--why", options->why, "For the record")->type_name("REASON");
  command->callback([&session, options] { session.finish(run_disarm(session, *options)); });
}

}  // namespace qualify::cli
