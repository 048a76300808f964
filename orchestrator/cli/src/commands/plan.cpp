#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "../commands.hpp"
#include "../gate_options.hpp"
#include "../granting.hpp"
#include "../table.hpp"
#include "qualify/plan/plan.hpp"

namespace qualify::cli {

namespace {

/// The grant that stands, or for a plan without one the reservation as it is now: planning starts
/// nothing and needs no permission.
Result<std::pair<scheduler::Grant, bool>> grant_for_plan(Session& session, run::State& state,
                                                         const std::string& gate,
                                                         const std::string& reservation) {
  const std::string name = reservation.empty() ? "local" : reservation;
  auto granted = current_grant(state, gate, name);
  if (!granted) return tl::unexpected(granted.error());
  if (*granted) return std::pair(std::move(**granted), true);
  const auto scheduler = open_scheduler(session, reservation);
  if (!scheduler) return tl::unexpected(scheduler.error());
  auto found = find_reservation(**scheduler, name);
  if (!found) return tl::unexpected(found.error());
  return std::pair(scheduler::Grant{gate, (*scheduler)->kind(), std::move(*found), session.user,
                                    session.clock.now()},
                   reservation.empty());
}

Result<Exit> run_plan(Session& session, const GateOptions& options) {
  const auto gate = find_gate(session, options.file, options.gate);
  if (!gate) return tl::unexpected(gate.error());
  auto state = run::open_state_read_only(session.state_folder());
  if (!state) return tl::unexpected(state.error());
  const auto digest = store::resolve(state->bundles, options.bundle);
  if (!digest) return tl::unexpected(digest.error());
  const auto bundle = store::load(state->bundles, *digest);
  if (!bundle) return tl::unexpected(bundle.error());
  const auto grant = grant_for_plan(session, *state, gate->name, options.reservation);
  if (!grant) return tl::unexpected(grant.error());
  const auto plan = plan::expand(*gate, *bundle, grant->first);
  if (!plan) return tl::unexpected(plan.error());
  const std::vector<std::size_t> stages = plan::stages(*gate, *plan);

  if (options.json) {
    Json json = to_json(*plan);
    json["digest"] = plan::plan_digest(*plan).str();
    json["granted"] = grant->second;
    json["longest_seconds"] =
        std::chrono::duration_cast<std::chrono::seconds>(plan->duration()).count();
    json["gpu_hours"] = plan->gpu_hours();
    json["stages"] = stages;
    session.print_json(std::move(json));
    return Exit::ok;
  }
  session.out << "Plan for gate " << plan->gate << " (" << policy::name_of(plan->kind)
              << "), bundle " << plan->bundle.brief() << " " << printable(bundle->name) << "\n\n";
  Table table({"ORDER", "RUN", "ARM"});
  int order = 0;
  for (const plan::Run& run : plan->runs) table.add({std::to_string(++order), run.id, run.arm});
  table.print(session.out, session.width);
  session.out << fmt::format(
      "\nEach: {} node{}, {} GPUs a node, {} task{} a node, at most {}.\n", plan->topology.nodes,
      plan->topology.nodes == 1 ? "" : "s", plan->topology.gpus_per_node, plan->tasks_per_node,
      plan->tasks_per_node == 1 ? "" : "s", format_duration(plan->run_limit));
  session.out << fmt::format("All:  at most {} with margins, {:.1f} GPU-hours.\n",
                             format_duration(plan->duration()), plan->gpu_hours());
  if (stages.size() > 1) {
    session.out << fmt::format(
        "The gate is judged after run {}, and goes on, where that does not decide it and the\n"
        "window has room, to run {}. The first {} runs take at most {}.\n",
        stages.front(), fmt::join(std::next(stages.begin()), stages.end(), ", "), stages.front(),
        format_duration(plan->duration(0, stages.front())));
  }
  if (!grant->second) {
    session.out << "Reservation " << printable(plan->reservation)
                << " is not granted to this gate yet:\n  qualify reservation grant "
                << printable(plan->reservation) << " --gate " << plan->gate << "\n";
  }
  session.out << "Nothing was started.\n";
  return Exit::ok;
}

}  // namespace

void add_plan(CLI::App& app, Session& session) {
  auto options = std::make_shared<GateOptions>();
  CLI::App* command = app.add_subcommand("plan", "Print the runs that a gate needs; start nothing");
  add_gate_options(*command, *options);
  command->callback([&session, options] { session.finish(run_plan(session, *options)); });
}

}  // namespace qualify::cli
