#include "conduct.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "event_text.hpp"
#include "granting.hpp"
#include "qualify/report/overhead.hpp"
#include "qualify/run/qualification.hpp"
#include "signals.hpp"
#include "table.hpp"

namespace qualify::cli {

namespace {

/// One line an event that changes something, for a person who watches.
void show_event(Session& session, const journal::Event& event) {
  // What a preflight finds is said by the command's end; a scheduler that is silent, while it
  // waits.
  const bool waits = event.payload.find(R"("code":"no-answer")") != std::string::npos;
  if (event.kind == run::event::kIntent) return;
  if (event.kind == run::event::kPreflight && !waits) return;
  session.err << format_time(event.time).substr(11, 8) << "  " << event_text(event) << '\n';
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
  if (judgement.overhead && outcome.state.gate.kind == policy::GateKind::performance) {
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
  if (!outcome.state.window_closed.empty()) {
    session.out << "  not run: ";
    print_wrapped(session.out, outcome.state.window_closed, 11, session.width);
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

}  // namespace

Result<run::Outcome> run_to_verdict(Session& session, run::State& state, const policy::Gate& gate,
                                    const Digest& bundle, const std::string& reservation,
                                    const run::Limits& limits,
                                    const run::QualificationState* unfinished) {
  const auto signer = ledger::load_key(state.paths.signing_key());
  if (!signer) return tl::unexpected(signer.error());
  const auto scheduler = open_scheduler(session, reservation);
  if (!scheduler) return tl::unexpected(scheduler.error());
  const auto& capture = gate.localization.capture;  // runs in the grant of the gate that it is of
  auto grant =
      grant_for_run(session, state, **scheduler, capture ? capture->of : gate.name, reservation);
  bool may_submit = true;
  if (unfinished != nullptr && run::is_live(*unfinished) &&
      (!grant || fingerprint(grant->reservation) != unfinished->plan.reservation_fingerprint)) {
    auto behind = grant_behind(state, *unfinished);
    if (!behind) return tl::unexpected(behind.error());
    if (*behind) {
      grant = std::move(**behind);
      may_submit = false;
    }
  }
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
                         session.environment,
                         limits};
  auto outcome = run::qualify_gate(state, {gate, bundle, *grant, may_submit}, ports);
  if (outcome && !outcome->log_not_signed.empty()) {
    session.err << "qualify: the log was not signed: " << outcome->log_not_signed << '\n';
  }
  return outcome;
}

Result<Exit> conduct(Session& session, run::State& state, const policy::Gate& gate,
                     const Digest& bundle, const std::string& reservation, bool json,
                     const run::Limits& limits, const run::QualificationState* unfinished) {
  const auto outcome =
      run_to_verdict(session, state, gate, bundle, reservation, limits, unfinished);
  if (!outcome) return tl::unexpected(outcome.error());
  if (json) {
    Json record = to_json(outcome->judgement);
    record["qualification"] = outcome->state.name;
    record["gate"] = gate.name;
    record["bundle"] = bundle.str();
    record["certificate"] =
        outcome->certificate.empty() ? Json(nullptr) : Json(outcome->certificate);
    session.print_json(std::move(record));
  } else {
    print_outcome(session, *outcome);
    print_logs(session, state, *outcome);
  }
  return policy::exit_for(outcome->judgement.verdict);
}

}  // namespace qualify::cli
