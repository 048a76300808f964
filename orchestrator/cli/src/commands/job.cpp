#include <CLI/CLI.hpp>
#include <memory>

#include "../commands.hpp"
#include "qualify/run/job.hpp"
#include "qualify/run/job_plan.hpp"
#include "qualify/run/node.hpp"
#include "qualify/scheduler/local.hpp"

namespace qualify::cli {

namespace {

run::JobContext context_of(const Session& session) {
  run::JobContext context;
  context.environment = session.environment;
  context.host = session.host;
  context.executable = session.executable.string();
  return context;
}

/// One node's part of a step; the batch step reads what it wrote.
Result<Exit> run_node(Session& session, const std::string& step, const std::string& plan_file) {
  const auto plan = run::read_job_plan(plan_file);
  if (!plan) return tl::unexpected(plan.error());
  const auto faults = step == "verify"
                          ? run::verify_node(*plan, context_of(session), session.clock)
                          : run::collect_node(*plan, context_of(session), session.clock);
  if (!faults) return tl::unexpected(faults.error());
  for (const std::string& fault : *faults) session.err << "qualify job: " << fault << '\n';
  return faults->empty() ? Exit::ok : Exit::undecided;
}

Result<Exit> run_job(Session& session, const std::string& plan_file) {
  const auto sentinel = run::run_job(plan_file, context_of(session), session.clock);
  if (!sentinel && sentinel.error().code == Errc::no_space) {
    session.err << "qualify job: " << sentinel.error().describe() << '\n';
    return static_cast<Exit>(run::kNoRoomExit);
  }
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

  auto node = std::make_shared<std::pair<std::string, std::string>>();
  CLI::App* step =
      app.add_subcommand("job-node", "One node's part of an attempt (started by srun)")->group("");
  step->add_option("STEP", node->first, "verify or collect")
      ->required()
      ->check(CLI::IsMember({"verify", "collect"}));
  step->add_option("PLAN", node->second, "Job plan file")->required();
  step->callback(
      [&session, node] { session.finish(run_node(session, node->first, node->second)); });

  auto folder = std::make_shared<std::string>();
  CLI::App* supervisor =
      app.add_subcommand("local-supervisor", "Watch one local job (started by qualify)")->group("");
  supervisor->add_option("FOLDER", *folder, "Job folder")->required();
  supervisor->callback([&session, folder] {
    session.exit = static_cast<Exit>(scheduler::supervise_local_job(*folder, session.clock));
  });
}

}  // namespace qualify::cli
