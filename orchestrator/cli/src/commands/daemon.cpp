#include <CLI/CLI.hpp>
#include <atomic>
#include <boost/asio.hpp>
#include <chrono>
#include <memory>

#include "../commands.hpp"
#include "../granting.hpp"
#include "../table.hpp"
#include "qualify/base/files.hpp"
#include "qualify/composite/composite.hpp"
#include "qualify/daemon/notify.hpp"
#include "qualify/daemon/watch_keeper.hpp"

namespace qualify::cli {

namespace {

namespace asio = boost::asio;

/// Where Slurm is not to be had: every question is answered with the reason, and gates of this
/// machine are looked after all the same.
class AbsentSlurm final : public scheduler::Scheduler {
 public:
  explicit AbsentSlurm(const Error& why) : why_(why) { why_.code = Errc::unavailable; }
  std::string kind() const override { return "slurm"; }
  Result<std::string> describe() override { return Unexpected(why_); }
  Result<Time> now() override { return Unexpected(why_); }
  Result<std::vector<scheduler::Reservation>> reservations() override { return Unexpected(why_); }
  Result<std::vector<scheduler::Node>> nodes() override { return Unexpected(why_); }
  Result<std::vector<scheduler::Job>> jobs() override { return Unexpected(why_); }
  Result<std::vector<scheduler::Job>> find(const std::string&) override { return Unexpected(why_); }
  Result<scheduler::Submission> submit(const scheduler::JobRequest&) override {
    return Unexpected(why_);
  }
  Result<void> would_accept(const scheduler::JobRequest&) override { return Unexpected(why_); }
  Result<void> cancel(const std::string&, const std::string&) override { return Unexpected(why_); }

 private:
  Error why_;
};

/// A gate that rests on others, due again: by its file as it is now, unless its criteria are others
/// than those that were armed.
Result<std::string> judge_armed(const Session& session, run::State& state,
                                const ledger::Signer& signer, const daemon::Armed& armed) {
  const auto qualification = policy::read_qualification(armed.file);
  if (!qualification) return tl::unexpected(qualification.error());
  const policy::Gate* gate = qualification->gate(armed.gate.name);
  if (gate == nullptr || policy_digest(*gate) != policy_digest(armed.gate)) {
    return fail(Errc::refused, "its criteria were changed since it was armed", armed.file,
                "qualify disarm " + armed.gate.name + ", then arm it again");
  }
  const auto outcome =
      composite::judge(state, *qualification, gate->name, signer, session.clock.now());
  if (!outcome) return tl::unexpected(outcome.error());
  return standing::name_of(outcome->standing.status) +
         (outcome->issued.empty() ? std::string()
                                  : ", certificate " + outcome->issued.substr(0, 12));
}

/// Looks happen on a thread of their own, one at a time, for a launch lasts as long as its runs;
/// signals, the timer and the watchdog are served by the loop meanwhile.
class DaemonLoop {
 public:
  DaemonLoop(Session& session, run::State& state, const ledger::Signer& signer,
             scheduler::Scheduler& scheduler, scheduler::Scheduler& local)
      : session_(session),
        notify_(session.variable("NOTIFY_SOCKET")),
        keeper_(state,
                {{scheduler,
                  signer,
                  session.clock,
                  [this] {
                    ++steps_;
                    return stopping_ ? run::Stop::detach : run::Stop::none;
                  },
                  {},
                  session.executable.string(),
                  session.environment},
                 &local,
                 [&session, &state, &local](const std::string& gate, const std::string& reservation)
                     -> Result<std::optional<scheduler::Grant>> {
                   if (reservation != "local") {
                     return current_grant(state, gate, reservation);
                   }
                   return grant_for_run(session, state, local, gate, reservation)
                       .map([](scheduler::Grant grant) { return std::optional(grant); });
                 },
                 [&state](const run::QualificationState& one) { return grant_behind(state, one); },
                 [this](const std::string& line) { say(line); },
                 [&session, &state, &signer](const daemon::Armed& armed) {
                   return judge_armed(session, state, signer, armed);
                 }}) {}

  Result<void> run() {
    asio::signal_set signals(loop_, SIGINT, SIGTERM, SIGHUP);
    signals.async_wait([&](const boost::system::error_code& error, int) {
      if (error) return;
      say("stopping; jobs go on");
      notify_.stopping();
      stopping_ = true;
      pause_.cancel();
    });
    begin_watchdog();
    notify_.ready("watching");
    say("ready");
    asio::post(worker_, [this] { after(keeper_.go_on().map([] { return Duration::zero(); })); });
    loop_.run();
    worker_.join();
    return std::move(outcome_);
  }

 private:
  void look() {
    asio::post(worker_, [this] { after(keeper_.look()); });
  }

  /// On the worker: hands its result to the loop, which decides what is next.
  void after(Result<Duration> result) {
    asio::post(loop_, [this, result = std::move(result)] {
      if (stopping_ || !result) {
        if (!result && result.error().code != Errc::interrupted) {
          outcome_ = tl::unexpected(result.error());
        }
        loop_.stop();
        return;
      }
      pause_.expires_after(*result);
      pause_.async_wait([this](const boost::system::error_code&) {
        if (stopping_) {
          loop_.stop();
        } else {
          look();
        }
      });
    });
  }

  /// Half the interval that the service manager asks for; said only when the worker has moved
  /// since, or only waits.
  void begin_watchdog() {
    const std::string text = session_.variable("WATCHDOG_USEC");
    watchdog_interval_ = std::chrono::microseconds(std::strtoll(text.c_str(), nullptr, 10) / 2);
    if (watchdog_interval_ > Duration::zero()) watchdog_tick();
  }
  void watchdog_tick() {
    const std::uint64_t steps = steps_;
    if (steps != steps_seen_ || pause_.expiry() > std::chrono::steady_clock::now()) {
      notify_.alive();
    }
    steps_seen_ = steps;
    watchdog_.expires_after(watchdog_interval_);
    watchdog_.async_wait([this](const boost::system::error_code& error) {
      if (!error) watchdog_tick();
    });
  }

  void say(const std::string& line) {
    session_.err << printable(line) + "\n" << std::flush;
    notify_.status(printable(line));
  }

  Session& session_;
  daemon::Notify notify_;
  asio::io_context loop_;
  asio::thread_pool worker_{1};
  asio::steady_timer pause_{loop_};
  asio::steady_timer watchdog_{loop_};
  Duration watchdog_interval_{};
  std::atomic<bool> stopping_ = false;
  std::atomic<std::uint64_t> steps_ = 0;
  std::uint64_t steps_seen_ = 0;
  daemon::WatchKeeper keeper_;
  Result<void> outcome_;
};

Result<Exit> run_daemon(Session& session) {
  auto state = open_state(session);
  if (!state) return tl::unexpected(state.error());
  const auto lock =
      FileLock::acquire_or(state->paths.daemon_lock(), {Errc::busy,
                                                        "another daemon looks after this state",
                                                        state->paths.folder.string(),
                                                        "one is enough; see: qualify status",
                                                        {}});
  if (!lock) return tl::unexpected(lock.error());
  const auto signer = ledger::load_key(state->paths.signing_key());
  if (!signer) return tl::unexpected(signer.error());
  const auto local = open_scheduler(session, "local");
  if (!local) return tl::unexpected(local.error());
  auto slurm = open_slurm(session);
  if (!slurm) {
    session.err << printable("without Slurm, for gates of this machine only: " +
                             slurm.error().describe())
                << std::endl;
    slurm = std::make_unique<AbsentSlurm>(slurm.error());
  }
  const auto ended = DaemonLoop(session, *state, **signer, **slurm, **local).run();
  if (!ended) return tl::unexpected(ended.error());
  return Exit::ok;
}

}  // namespace

void add_daemon(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("daemon", "Launch armed gates when their reservations start");
  command->callback([&session] { session.finish(run_daemon(session)); });
}

}  // namespace qualify::cli
