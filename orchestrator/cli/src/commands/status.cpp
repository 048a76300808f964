#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "../commands.hpp"
#include "../table.hpp"
#include "qualify/daemon/arming.hpp"
#include "qualify/recurrence/recurrence.hpp"
#include "qualify/run/progress.hpp"

namespace qualify::cli {

namespace {

struct Options {
  std::string gate;
  bool json = false;
};

std::string status_of(const run::QualificationState& state) {
  if (state.verdict) return policy::name_of(*state.verdict);
  if (!state.cancelled.empty()) return "open";
  for (const run::RunState& run : state.runs) {
    if (!run.attempts.empty() && !run.attempts.back().ended) return "running";
  }
  return state.preflight_faults.empty() ? "open" : "blocked";
}

std::string next_step(const run::QualificationState& state) {
  if (!state.certificate.empty()) return "qualify cert verify " + state.certificate.substr(0, 12);
  if (state.open())
    return "qualify run " + state.plan.gate + " --bundle " + state.plan.bundle.brief() +
           (state.plan.scheduler == "local" ? std::string()
                                            : " --reservation " + state.plan.reservation);
  return {};
}

std::string detail_of(const run::QualificationState& state) {
  if (state.verdict) return state.summary;
  if (!state.cancelled.empty()) return "given up by " + state.cancelled;
  if (!state.preflight_faults.empty()) return state.preflight_faults.front();
  std::size_t done = 0;
  for (const run::RunState& run : state.runs) {
    done += static_cast<std::size_t>(!run.attempts.empty() && run.attempts.back().ended);
  }
  return std::to_string(done) + " of " + std::to_string(state.runs.size()) + " runs ended";
}

Json to_json(const run::QualificationState& state) {
  Json runs = Json::array();
  for (const run::RunState& run : state.runs) {
    Json attempts = Json::array();
    for (const run::Attempt& attempt : run.attempts) {
      attempts.push_back(
          {{"number", attempt.number},
           {"job_id", attempt.job_id.empty() ? Json(nullptr) : Json(attempt.job_id)},
           {"ended", attempt.ended},
           {"complete", attempt.complete},
           {"failure", attempt.failure.empty() ? Json(nullptr) : Json(attempt.failure)},
           {"failure_class", run::name_of(attempt.failure_class)},
           {"node_seconds", attempt.node_seconds},
           {"gpu_seconds", attempt.gpu_seconds},
           {"nodes", attempt.nodes}});
    }
    runs.push_back({{"id", run.run.id},
                    {"arm", run.run.arm},
                    {"attempts", std::move(attempts)},
                    {"evidence", run.evidence ? Json(run.evidence->str()) : Json(nullptr)}});
  }
  Json costs = Json::array();
  for (const run::Cost& cost : run::cost_by_arm({&state, 1})) {
    costs.push_back({{"arm", cost.arm},
                     {"attempts", cost.attempts},
                     {"node_seconds", cost.node_seconds},
                     {"gpu_seconds", cost.gpu_seconds}});
  }
  return {{"qualification", state.name},
          {"gate", state.plan.gate},
          {"kind", policy::name_of(state.plan.kind)},
          {"status", status_of(state)},
          {"bundle", state.plan.bundle.str()},
          {"policy", state.plan.policy.str()},
          {"plan", state.plan_digest.str()},
          {"scheduler", state.plan.scheduler},
          {"reservation", state.plan.reservation},
          {"started", format_time(state.started)},
          {"judged", state.judged_at ? Json(format_time(*state.judged_at)) : Json(nullptr)},
          {"level", state.level ? Json(*state.level) : Json(nullptr)},
          {"reasons", state.reasons},
          {"certificate", state.certificate.empty() ? Json(nullptr) : Json(state.certificate)},
          {"cost", std::move(costs)},
          {"runs", std::move(runs)}};
}

/// What one gate has cost, over all of its qualifications: a line for each arm.
void print_cost(Session& session, const std::vector<run::QualificationState>& found) {
  std::vector<run::Cost> all = run::cost_by_arm(found);
  std::erase_if(all, [](const run::Cost& cost) { return cost.attempts == 0; });
  if (all.empty()) return;
  session.out << '\n';
  Table table({"COST OF ARM", "ATTEMPTS", "NODE-SECONDS", "GPU-SECONDS"});
  for (const run::Cost& cost : all) {
    table.add({cost.arm, std::to_string(cost.attempts), fmt::format("{:.0f}", cost.node_seconds),
               fmt::format("{:.0f}", cost.gpu_seconds)});
  }
  table.print(session.out, session.width);
}

/// When a recurrent gate is due next; nothing while an occurrence is under way.
std::optional<Time> next_of(const daemon::Armed& armed) {
  if (!armed.recurrent() || armed.due) return std::nullopt;
  const auto recurrence = recurrence::Recurrence::parse(armed.schedule, armed.time_zone);
  if (!recurrence) return std::nullopt;
  return recurrence->next_after(armed.handled);
}

Json to_json(const daemon::Armed& armed) {
  const auto next = next_of(armed);
  Json missed = nullptr;
  if (armed.missed) {
    missed = {{"first", format_time(armed.missed->first)},
              {"last", format_time(armed.missed->last)},
              {"count", armed.missed->count},
              {"why", armed.missed->why}};
  }
  return {{"gate", armed.gate.name},
          {"bundle", armed.bundle.str()},
          {"reservation", armed.reservation},
          {"by", armed.by},
          {"since", format_time(armed.since)},
          {"waiting_for", armed.waiting_for},
          {"schedule", armed.recurrent() ? Json(armed.schedule) : Json(nullptr)},
          {"time_zone", armed.recurrent() ? Json(armed.time_zone) : Json(nullptr)},
          {"due", armed.due ? Json(format_time(*armed.due)) : Json(nullptr)},
          {"next", next ? Json(format_time(*next)) : Json(nullptr)},
          {"missed", std::move(missed)}};
}

std::string detail_of(const daemon::Armed& armed) {
  std::string why =
      armed.reservation == "local" ? "this machine" : "reservation " + armed.reservation;
  if (armed.recurrent()) {
    const auto recurrence = recurrence::Recurrence::parse(armed.schedule, armed.time_zone);
    if (!recurrence) {
      why += "; " + recurrence.error().message;
    } else if (armed.due) {
      why += "; due " + recurrence->local(*armed.due);
    } else {
      why += "; next " + recurrence->local(*next_of(armed));
    }
    if (armed.missed && recurrence) {
      why +=
          "; missed " + recurrence->local(armed.missed->last) +
          (armed.missed->count > 1 ? " and " + std::to_string(armed.missed->count - 1) + " before"
                                   : "") +
          ": " + armed.missed->why;
    }
  }
  for (std::size_t i = 0; i < armed.waiting_for.size(); ++i) {
    why += (i == 0 ? " waits for: " : "; ") + armed.waiting_for[i];
  }
  return why;
}

/// The latest qualification of every gate; all of one gate when it is named.
Result<std::vector<run::QualificationState>> load(run::State& state, const std::string& gate) {
  const journal::Journal journal(state.database);
  const auto names = gate.empty() ? journal.latest_qualifications() : journal.qualifications(gate);
  if (!names) return tl::unexpected(names.error());
  std::vector<run::QualificationState> found;
  for (const std::string& name : *names) {
    const auto events = journal.events(name);
    if (!events) return tl::unexpected(events.error());
    auto derived = run::derive(*events);
    if (!derived) return tl::unexpected(derived.error());
    found.push_back(std::move(*derived));
  }
  return found;
}

Result<Exit> run_status(Session& session, const Options& options) {
  auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  const auto found = load(*state, options.gate);
  if (!found) return tl::unexpected(found.error());
  if (options.json) {
    Json list = Json::array();
    for (const auto& entry : *found) list.push_back(to_json(entry));
    const auto armed = daemon::armed_gates(state->database);
    if (!armed) return tl::unexpected(armed.error());
    Json waiting = Json::array();
    for (const daemon::Armed& one : *armed) {
      if (!options.gate.empty() && one.gate.name != options.gate) continue;
      waiting.push_back(to_json(one));
    }
    session.print_json({{"qualifications", std::move(list)}, {"armed", std::move(waiting)}});
    return Exit::ok;
  }
  auto armed = daemon::armed_gates(state->database);
  if (!armed) return tl::unexpected(armed.error());
  if (!options.gate.empty()) {
    std::erase_if(*armed, [&](const daemon::Armed& one) { return one.gate.name != options.gate; });
  }
  if (found->empty() && armed->empty()) {
    session.out << (options.gate.empty()
                        ? "No gate has been run yet."
                        : "Gate " + printable(options.gate) + " has not been run yet.")
                << "\nNext: qualify run GATE --bundle BUNDLE\n";
    return Exit::ok;
  }
  Table table({options.gate.empty() ? "GATE" : "RUN OF GATE", "STATUS", "BUNDLE", "WHY"});
  for (const auto& entry : *found) {
    std::string why = detail_of(entry);
    table.add({options.gate.empty() ? entry.plan.gate : entry.name, status_of(entry),
               entry.plan.bundle.brief(), std::move(why)});
  }
  for (const daemon::Armed& one : *armed) {
    table.add({one.gate.name, "armed", one.bundle.brief(), detail_of(one)});
  }
  table.print(session.out, session.width);
  if (!options.gate.empty()) print_cost(session, *found);
  bool first = true;
  for (const auto& entry : *found) {
    const std::string step = next_step(entry);
    if (step.empty()) continue;
    if (first) session.out << "\nNext:\n";
    first = false;
    session.out << "  " << step << '\n';
  }
  return Exit::ok;
}

}  // namespace

void add_status(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("status", "Where every gate stands, and what to do next");
  command->add_option("GATE", options->gate, "Only this gate, with its earlier runs");
  command->add_flag("--json", options->json, "Print one JSON record");
  command->callback([&session, options] { session.finish(run_status(session, *options)); });
}

}  // namespace qualify::cli
