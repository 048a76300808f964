#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "../commands.hpp"
#include "../gate_options.hpp"
#include "../granting.hpp"
#include "../table.hpp"
#include "qualify/plan/plan.hpp"
#include "qualify/run/baselines.hpp"
#include "qualify/run/progress.hpp"

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

/// Where a run may be and what it starts from, for the table; empty = anywhere, from the beginning.
std::string place_of(const plan::Plan& plan, std::size_t index) {
  const plan::Run& run = plan.runs[index];
  std::vector<std::string> words;
  if (run.allocation != 0 && index > 0 && plan.runs[index - 1].allocation == run.allocation) {
    words.push_back("in the job of " + plan.runs[index - 1].id);
  }
  if (!run.same_nodes_as.empty()) words.push_back("nodes of " + run.same_nodes_as);
  if (!run.other_nodes_than.empty()) words.push_back("other nodes than " + run.other_nodes_than);
  if (!run.resumes.empty()) {
    words.push_back("from iteration " + std::to_string(plan.from_iteration) + " of " + run.resumes);
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

/// The part of the reservation that is still to come.
struct Window {
  Time from;
  Time to;
  [[nodiscard]] Duration length() const { return std::max(Duration::zero(), to - from); }
};

/// How many of the plan's runs have room: all those of its stages that fit as a whole.
std::size_t fitting(const plan::Plan& plan, const std::vector<std::size_t>& stages,
                    const Window& window) {
  std::size_t fit = 0;
  for (const std::size_t stage : stages) {
    if (plan.duration(0, stage) <= window.length()) fit = stage;
  }
  return fit;
}

void print_window(Session& session, const plan::Plan& plan, const std::vector<std::size_t>& stages,
                  const Window& window) {
  session.out << fmt::format(
      "Window: {} to {} UTC, {} long or left. ", format_time(window.from).substr(0, 16),
      format_time(window.to).substr(0, 16), format_duration(window.length()));
  const std::size_t fit = fitting(plan, stages, window);
  if (fit == plan.runs.size()) {
    session.out << "The plan fits.\n";
  } else if (fit == 0) {
    session.out << "The plan does not fit, and would not start.\n";
  } else {
    session.out << fmt::format("Runs 1 to {} fit.\n", fit);
  }
  if (stages.size() > 1) {
    session.out << fmt::format("Left out first where time is short: runs {} to {}.\n",
                               stages[stages.size() - 2] + 1, stages.back());
  } else {
    session.out << "Nothing can be left out: the gate needs all of its runs.\n";
  }
}

void print_plan(Session& session, const plan::Plan& plan, const std::string& bundle,
                const std::vector<std::size_t>& stages, const std::optional<Duration>& expected) {
  session.out << "Plan for gate " << plan.gate << " (" << policy::name_of(plan.kind) << "), bundle "
              << plan.bundle.brief() << " " << printable(bundle) << "\n\n";
  Table table({"ORDER", "RUN", "ARM", "WHERE"});
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    table.add({std::to_string(i + 1), plan.runs[i].id, plan.runs[i].arm, place_of(plan, i)});
  }
  table.print(session.out, session.width);
  session.out << fmt::format("\nEach: {} node{}, {} GPUs a node, {} task{} a node, at most {}.\n",
                             plan.topology.nodes, plan.topology.nodes == 1 ? "" : "s",
                             plan.topology.gpus_per_node, plan.tasks_per_node,
                             plan.tasks_per_node == 1 ? "" : "s", format_duration(plan.run_limit));
  if (plan.baseline) {
    session.out << "All against baseline " << printable(plan.baseline->name) << ": run "
                << printable(plan.baseline->run) << " of certificate "
                << plan.baseline->certificate.substr(0, 12) << ", bundle "
                << plan.baseline->bundle.brief() << ".\n";
  }
  session.out << fmt::format("All:  at most {} with margins, {:.1f} GPU-hours.\n",
                             format_duration(plan.duration()), plan.gpu_hours());
  if (expected) {
    session.out << fmt::format("      About {}, going by earlier runs of the same arms.\n",
                               format_duration(*expected));
  }
  if (stages.size() > 1) {
    session.out << fmt::format(
        "The gate is judged after run {}, and goes on, where that does not decide it and the\n"
        "window has room, to run {}. The first {} runs take at most {}.\n",
        stages.front(), fmt::join(std::next(stages.begin()), stages.end(), ", "), stages.front(),
        format_duration(plan.duration(0, stages.front())));
  }
}

Result<Exit> run_plan(Session& session, const GateOptions& options) {
  const auto gate = find_gate(session, options.file, options.gate);
  if (!gate) return tl::unexpected(gate.error());
  auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  const auto digest = store::resolve(state->bundles, options.bundle);
  if (!digest) return tl::unexpected(digest.error());
  const auto bundle = store::load(state->bundles, *digest);
  if (!bundle) return tl::unexpected(bundle.error());
  const auto grant = grant_for_plan(session, *state, gate->name, options.reservation);
  if (!grant) return tl::unexpected(grant.error());
  const auto plan = run::plan_gate(*state, *gate, *bundle, grant->first);
  if (!plan) return tl::unexpected(plan.error());
  const std::vector<std::size_t> stages = plan::stages(*gate, *plan);

  const auto expected = run::expected_duration(state->database, *plan);
  if (!expected) return tl::unexpected(expected.error());
  const scheduler::Reservation& reservation = grant->first.reservation;
  // The local backend's reservation has no end that anybody waits for.
  std::optional<Window> window;
  if (!options.reservation.empty()) {
    window = Window{std::max(session.clock.now(), reservation.start), reservation.end};
  }

  if (options.json) {
    Json json = to_json(*plan);
    json["digest"] = plan::plan_digest(*plan).str();
    json["granted"] = grant->second;
    json["longest_seconds"] =
        std::chrono::duration_cast<std::chrono::seconds>(plan->duration()).count();
    json["gpu_hours"] = plan->gpu_hours();
    json["stages"] = stages;
    json["expected_seconds"] =
        *expected ? Json(std::chrono::duration_cast<std::chrono::seconds>(**expected).count())
                  : Json(nullptr);
    json["window"] = nullptr;
    if (window) {
      json["window"] = {{"from", format_time(window->from)},
                        {"to", format_time(window->to)},
                        {"runs_that_fit", fitting(*plan, stages, *window)}};
    }
    session.print_json(std::move(json));
    return Exit::ok;
  }
  print_plan(session, *plan, bundle->name, stages, *expected);
  if (window) print_window(session, *plan, stages, *window);
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
