#include <CLI/CLI.hpp>
#include <memory>

#include "../commands.hpp"
#include "../conduct.hpp"
#include "../table.hpp"
#include "qualify/run/progress.hpp"

namespace qualify::cli {

namespace {

/// Those that can be worse for whoever asked: an error hides no later verdict.
Exit worse(Exit a, Exit b) {
  return a == Exit::ok ? b : a;
}

Result<Exit> run_resume(Session& session, const std::string& gate) {
  auto state = open_state(session);
  if (!state) return tl::unexpected(state.error());
  const auto open = run::open_qualifications(state->database, gate);
  if (!open) return tl::unexpected(open.error());
  if (open->empty()) {
    session.out << "Nothing is unfinished.\n";
    return Exit::ok;
  }
  Exit exit = Exit::ok;
  for (const run::QualificationState& one : *open) {
    session.out << "Going on with " << printable(one.name) << '\n';
    const bool local = one.plan.scheduler == "local";
    auto done = conduct(session, *state, one.gate, one.plan.bundle,
                        local ? std::string() : one.plan.reservation, false, {}, &one);
    if (!done && (open->size() == 1 || done.error().code == Errc::interrupted)) return done;
    if (done) {
      exit = worse(exit, *done);
    } else {  // one that cannot go on must not keep the others
      session.finish(done);
      exit = worse(exit, session.exit);
    }
  }
  return exit;
}

}  // namespace

void add_resume(CLI::App& app, Session& session) {
  auto gate = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "resume", "Go on with what is unfinished, by the criteria that were recorded");
  command->add_option("GATE", *gate, "Only this gate");
  command->callback([&session, gate] { session.finish(run_resume(session, *gate)); });
}

}  // namespace qualify::cli
