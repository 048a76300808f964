#include <CLI/CLI.hpp>
#include <memory>

#include "../commands.hpp"
#include "qualify/run/job.hpp"
#include "qualify/scheduler/local.hpp"

namespace qualify::cli {

namespace {

Result<Exit> run_job(Session& session, const std::string& plan_file) {
  const auto sentinel = run::run_job(plan_file, {session.environment, session.host}, session.clock);
  if (!sentinel) return tl::unexpected(sentinel.error());
  if (sentinel->failure.empty()) return Exit::ok;
  session.err << "qualify job: " << sentinel->failure << '\n';
  return Exit::differs;
}

}  // namespace

void add_job(CLI::App& app, Session& session) {
  // What schedulers start; nobody types these, so help does not list them.
  auto plan_file = std::make_shared<std::string>();
  CLI::App* job =
      app.add_subcommand("job", "Run one attempt (started by the scheduler)")->group("");
  job->add_option("PLAN", *plan_file, "Job plan file")->required();
  job->callback([&session, plan_file] { session.finish(run_job(session, *plan_file)); });

  auto folder = std::make_shared<std::string>();
  CLI::App* supervisor =
      app.add_subcommand("local-supervisor", "Watch one local job (started by qualify)")->group("");
  supervisor->add_option("FOLDER", *folder, "Job folder")->required();
  supervisor->callback([&session, folder] {
    session.exit = static_cast<Exit>(scheduler::supervise_local_job(*folder, session.clock));
  });
}

}  // namespace qualify::cli
