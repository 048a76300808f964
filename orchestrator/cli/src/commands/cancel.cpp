#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "../commands.hpp"
#include "../table.hpp"
#include "qualify/base/files.hpp"
#include "qualify/run/progress.hpp"

namespace qualify::cli {

namespace {

/// How long jobs get to end, and a running qualify to notice that its job was taken away.
constexpr Duration kPatience = std::chrono::seconds(60);
constexpr Duration kLook = std::chrono::milliseconds(200);

struct Options {
  std::string gate;
  std::string why;
};

/// Cancels what the qualification has live and waits for its end. Returns how many jobs it had.
Result<std::size_t> cancel_jobs(Session& session, const run::QualificationState& one) {
  std::vector<std::string> nonces;
  for (const run::RunState& run : one.runs) {
    if (!run.attempts.empty() && !run.attempts.back().ended) {
      nonces.push_back(run.attempts.back().nonce);
    }
  }
  if (nonces.empty()) return 0;
  const bool local = one.plan.scheduler == "local";
  const auto scheduler = open_scheduler(session, local ? std::string() : one.plan.reservation);
  if (!scheduler) return tl::unexpected(scheduler.error());
  std::size_t jobs = 0;
  for (const std::string& nonce : nonces) {
    bool counted = false;
    for (Duration waited{};; waited += kLook) {
      const auto found = (*scheduler)->find(nonce);
      if (!found) return tl::unexpected(found.error());
      bool live = false;
      for (const scheduler::Job& job : *found) {
        if (is_terminal(job.state)) continue;
        live = true;
        if (auto done = (*scheduler)->cancel(job.id, job.nonce); !done)
          return tl::unexpected(done.error());
      }
      jobs += live && !counted ? 1 : 0;
      counted = counted || live;
      if (!live) break;
      if (waited >= kPatience) {
        return fail(Errc::unavailable,
                    "a cancelled job has not ended within " + format_duration(kPatience), one.name,
                    "give the same command again");
      }
      session.clock.sleep_for(kLook);
    }
  }
  return jobs;
}

/// The state for ourselves: a qualify that ran the gate sees its job cancelled, and leaves.
Result<FileLock> wait_for_lock(Session& session, const run::State& state) {
  for (Duration waited{};; waited += kLook) {
    auto lock = FileLock::acquire(state.paths.lock(), false);
    if (lock || lock.error().code != Errc::busy || waited >= kPatience) return lock;
    session.clock.sleep_for(kLook);
  }
}

Result<Exit> run_cancel(Session& session, const Options& options) {
  auto state = open_state(session);
  if (!state) return tl::unexpected(state.error());
  const auto open = run::open_qualifications(state->database, options.gate);
  if (!open) return tl::unexpected(open.error());
  if (open->empty()) {
    session.out << "Nothing of gate " << printable(options.gate) << " is unfinished.\n";
    return Exit::ok;
  }
  for (const run::QualificationState& one : *open) {
    const auto jobs = cancel_jobs(session, one);
    if (!jobs) return tl::unexpected(jobs.error());
    const auto lock = wait_for_lock(session, *state);
    if (!lock) return tl::unexpected(lock.error());
    // Between our look and the lock, the qualify that held it may have begun another attempt.
    const auto now = run::state_of(journal::Journal(state->database), one.name);
    if (!now) return tl::unexpected(now.error());
    if (now->finished()) {
      session.out << one.name
                  << " reached its verdict meanwhile: " << policy::name_of(*now->verdict) << '\n';
      continue;
    }
    const auto later = cancel_jobs(session, *now);
    if (!later) return tl::unexpected(later.error());
    journal::Journal journal(state->database);
    const auto noted = journal.append(session.clock.now(), one.name, {}, 0, run::event::kCancelled,
                                      {{"by", session.user}, {"why", options.why}});
    if (!noted) return tl::unexpected(noted.error());
    session.out << one.name << ": given up; " << *jobs + *later
                << (*jobs + *later == 1 ? " live job was" : " live jobs were") << " cancelled\n";
  }
  return Exit::ok;
}

}  // namespace

void add_cancel(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("cancel", "End a gate's live job and give its unfinished runs up");
  command->add_option("GATE", options->gate, "The gate")->required();
  command->add_option("--why", options->why, "For the record")->type_name("REASON");
  command->callback([&session, options] { session.finish(run_cancel(session, *options)); });
}

}  // namespace qualify::cli
