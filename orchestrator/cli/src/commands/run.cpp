#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "../commands.hpp"
#include "../gate_options.hpp"
#include "../granting.hpp"
#include "../signals.hpp"
#include "../table.hpp"
#include "qualify/report/overhead.hpp"
#include "qualify/run/qualification.hpp"

namespace qualify::cli {

namespace {

/// One line an event, for a person who watches.
void show_event(Session& session, const journal::Event& event) {
  const auto payload = parse_json(event.payload, "event");
  if (!payload) return;
  const auto text = [&](const char* key) { return payload->value(key, std::string()); };
  std::string line;
  if (event.kind == run::event::kPlanCreated) {
    line = "started " + event.qualification;
  } else if (event.kind == run::event::kSubmitted) {
    line = fmt::format("run {}: attempt {} submitted as job {}", event.run, event.attempt,
                       text("job_id").substr(0, 12));
  } else if (event.kind == run::event::kRunning) {
    line = fmt::format("run {}: running", event.run);
  } else if (event.kind == run::event::kEnded) {
    line = fmt::format("run {}: {}", event.run,
                       payload->value("complete", false) ? std::string("done") : text("failure"));
  } else if (event.kind == run::event::kEvidence) {
    line = fmt::format("run {}: evidence {}", event.run, text("digest").substr(7, 12));
  } else {
    return;
  }
  session.err << format_time(event.time).substr(11, 8) << "  " << printable(line) << '\n';
}

void print_certificate(Session& session, const run::Outcome& outcome) {
  if (!outcome.certificate.empty()) {
    session.out << "  certificate " << outcome.certificate << '\n';
  } else if (!outcome.no_certificate.empty()) {
    session.out << "  no certificate: ";
    print_wrapped(session.out, outcome.no_certificate, 4, session.width);
  }
}

void print_outcome(Session& session, const run::Outcome& outcome) {
  const policy::Judgement& judgement = outcome.judgement;
  session.out << outcome.state.name << ": " << policy::name_of(judgement.verdict);
  if (judgement.level) session.out << " at " << exactness::name_of(*judgement.level);
  session.out << '\n';
  if (judgement.overhead) {
    session.out << '\n' << report::overhead_text(*judgement.overhead, session.width);
    if (!outcome.state.window_closed.empty()) {
      session.out << "  not run: ";
      print_wrapped(session.out, outcome.state.window_closed, 11, session.width);
    }
    print_certificate(session, outcome);
    return;
  }
  for (const std::string& reason : judgement.reasons) {
    session.out << "  - ";
    print_wrapped(session.out, reason, 4, session.width);
  }
  for (const std::string& limit : judgement.limits) {
    session.out << "  limit: ";
    print_wrapped(session.out, limit, 9, session.width);
  }
  print_certificate(session, outcome);
}

/// Where to look when it is no pass: the attempt of each run that did not complete, or all of it.
void print_logs(Session& session, const run::State& state, const run::Outcome& outcome) {
  if (outcome.judgement.verdict == policy::Verdict::pass) return;
  const std::filesystem::path all = state.paths.runs() / outcome.state.name;
  bool named = false;
  for (const run::RunState& run : outcome.state.runs) {
    if (run.attempts.empty() || run.attempts.back().complete) continue;
    named = true;
    const std::string attempt = "attempt-" + std::to_string(run.attempts.back().number);
    session.out << "  logs of run " << run.run.id << ": " << (all / run.run.id / attempt).string()
                << '\n';
  }
  if (!named) session.out << "  logs: " << all.string() << '\n';
}

Result<Exit> run_gate(Session& session, const GateOptions& options) {
  const auto gate = find_gate(session, options.file, options.gate);
  if (!gate) return tl::unexpected(gate.error());
  auto state = run::open_state(session.state_folder());
  if (!state) return tl::unexpected(state.error());
  const auto digest = store::resolve(state->bundles, options.bundle);
  if (!digest) return tl::unexpected(digest.error());
  const auto signer = ledger::load_key(state->paths.signing_key());
  if (!signer) return tl::unexpected(signer.error());
  const auto scheduler = open_scheduler(session, options.reservation);
  if (!scheduler) return tl::unexpected(scheduler.error());
  const auto grant = grant_for_run(session, *state, **scheduler, gate->name, options.reservation);
  if (!grant) return tl::unexpected(grant.error());

  catch_stop_signals();
  const run::Ports ports{**scheduler,
                         **signer,
                         session.clock,
                         stop_requested,
                         [&session](const journal::Event& event) {
                           if (session.err_is_terminal) show_event(session, event);
                         },
                         session.executable.string(),
                         session.environment};
  const auto outcome = run::qualify_gate(*state, {*gate, *digest, *grant}, ports);
  if (!outcome) return tl::unexpected(outcome.error());
  if (options.json) {
    Json json = to_json(outcome->judgement);
    json["qualification"] = outcome->state.name;
    json["gate"] = gate->name;
    json["bundle"] = digest->str();
    json["certificate"] = outcome->certificate.empty() ? Json(nullptr) : Json(outcome->certificate);
    session.print_json(std::move(json));
  } else {
    print_outcome(session, *outcome);
    print_logs(session, *state, *outcome);
  }
  return policy::exit_for(outcome->judgement.verdict);
}

}  // namespace

void add_run(CLI::App& app, Session& session) {
  auto options = std::make_shared<GateOptions>();
  CLI::App* command =
      app.add_subcommand("run", "Run a gate to its verdict, or go on with an unfinished one");
  add_gate_options(*command, *options);
  command->footer(
      "Ctrl-C cancels the live job; SIGTERM and SIGHUP leave it running.\n"
      "The same command goes on from there.");
  command->callback([&session, options] { session.finish(run_gate(session, *options)); });
}

}  // namespace qualify::cli
