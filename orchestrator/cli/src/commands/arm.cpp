#include <CLI/CLI.hpp>
#include <memory>

#include "../commands.hpp"
#include "../gate_options.hpp"
#include "../granting.hpp"
#include "../table.hpp"
#include "qualify/daemon/arming.hpp"
#include "qualify/plan/plan.hpp"
#include "qualify/store/bundle.hpp"

namespace qualify::cli {

namespace {

Result<Exit> run_arm(Session& session, const GateOptions& options) {
  const auto gate = find_gate(session, options.file, options.gate);
  if (!gate) return tl::unexpected(gate.error());
  auto state = open_state(session);
  if (!state) return tl::unexpected(state.error());
  const auto digest = store::resolve(state->bundles, options.bundle);
  if (!digest) return tl::unexpected(digest.error());
  const auto bundle = store::load(state->bundles, *digest);
  if (!bundle) return tl::unexpected(bundle.error());
  const auto grant = current_grant(*state, gate->name, options.reservation);
  if (!grant) return tl::unexpected(grant.error());
  if (!*grant) {
    return fail(
        Errc::refused,
        "reservation '" + options.reservation + "' is not granted to gate '" + gate->name + "'", {},
        "qualify reservation grant " + options.reservation + " --gate " + gate->name);
  }
  // What cannot be planned is said now, and not on Saturday night.
  if (const auto plan = plan::expand(*gate, *bundle, **grant); !plan) {
    return tl::unexpected(plan.error());
  }
  const auto armed =
      daemon::arm(state->database,
                  {*gate, *digest, options.reservation, session.user, session.clock.now(), {}});
  if (!armed) return tl::unexpected(armed.error());
  session.out << "Armed gate " << gate->name << " with bundle " << digest->brief()
              << " on reservation " << printable(options.reservation) << ".\n"
              << "qualify daemon launches it when the reservation is active and healthy.\n";
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
  CLI::App* command =
      app.add_subcommand("arm", "Let the daemon launch a gate when its reservation starts");
  add_gate_options(*command, *options);
  command->get_option("--reservation")->required()->description("Slurm reservation");
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
