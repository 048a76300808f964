#include "qualify/scheduler/local.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "job_folder.hpp"
#include "qualify/base/process.hpp"

namespace qualify::scheduler {

namespace {

constexpr const char* kReservation = "local";

bool usable_name(const std::string& nonce) {
  return !nonce.empty() && nonce.find_first_not_of(
                               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTU"
                               "VWXYZ0123456789-_") == std::string::npos;
}

class Local final : public Scheduler {
 public:
  Local(LocalOptions options, Clock& clock) : options_(std::move(options)), clock_(clock) {}

  std::string kind() const override { return "local"; }
  Result<std::string> describe() override { return "local machine " + options_.host; }
  Result<Time> now() override { return clock_.now(); }

  Result<std::vector<Reservation>> reservations() override {
    Reservation reservation;
    reservation.name = kReservation;
    // Always there: its identity must not change from one day to the next.
    reservation.start = Time();
    reservation.end = Time(std::chrono::sys_days(std::chrono::year(9999) / 12 / 31));
    reservation.flags = {"SPEC_NODES"};
    reservation.nodes = {options_.host};
    reservation.node_count = 1;
    reservation.core_count = std::thread::hardware_concurrency();
    return std::vector{reservation};
  }

  Result<std::vector<Node>> nodes() override {
    Node node;
    node.name = options_.host;
    node.usable = true;
    node.state = "UP";
    node.cpus = std::thread::hardware_concurrency();
    return std::vector{node};
  }

  Result<std::vector<Job>> jobs() override {
    std::vector<Job> jobs;
    std::error_code error;
    for (fs::directory_iterator it(options_.folder, error), end; !error && it != end;
         it.increment(error)) {
      if (!fs::exists(it->path() / "request.json")) continue;
      auto job = read_job(it->path());
      if (!job) return tl::unexpected(job.error());
      if (*job) jobs.push_back(std::move(**job));
    }
    if (error && error.value() != ENOENT) {
      return fail_errno(error.value(), "cannot list", options_.folder.string());
    }
    const bool ours = std::any_of(jobs.begin(), jobs.end(),
                                  [](const Job& job) { return job.state == JobState::running; });
    if (!ours) {
      if (auto holder = foreign_holder()) jobs.push_back(std::move(*holder));
    }
    return jobs;
  }

  Result<Submission> submit(const JobRequest& request) override {
    if (request.nodes != 1 || request.gpus_per_node != 0) {
      return fail(Errc::refused, "the local machine is one node without scheduled GPUs", {},
                  "give a Slurm reservation with --reservation");
    }
    if (!usable_name(request.nonce)) {
      return fail(Errc::invalid_input, "a nonce must be letters, digits, '-' and '_'");
    }
    const fs::path folder = options_.folder / request.nonce;
    auto lock = FileLock::acquire(options_.machine_lock, false);
    if (!lock) {
      if (lock.error().code != Errc::busy) return tl::unexpected(lock.error());
      return fail(Errc::refused, "the machine is in use by another run",
                  options_.machine_lock.string(),
                  "wait for it to end, or see 'qualify status' there");
    }
    if (auto made = make_folders(folder); !made) return tl::unexpected(made.error());
    const local::Request record{request.nonce,      request.name,   request.executable,
                                request.plan_file,  request.folder, request.environment,
                                request.time_limit, clock_.now()};
    if (auto written = local::write_request(folder, record); !written) {
      return tl::unexpected(written.error());
    }
    ProcessRequest supervisor;
    supervisor.argv = {request.executable, "local-supervisor", folder.string()};
    supervisor.environment = request.environment;
    supervisor.folder = request.folder;
    supervisor.stdout_file = folder / "supervisor.log";
    supervisor.stderr_file = folder / "supervisor.log";
    // The lock lives as long as any process has the descriptor: the supervisor, and nobody else,
    // for it is close-on-exec again in what the supervisor starts.
    supervisor.inherited_fds = {lock->fd()};
    const auto pid = spawn(supervisor);
    if (!pid) return tl::unexpected(pid.error());
    const auto status = wait_for(*pid);
    if (!status) return tl::unexpected(status.error());
    if (status->code == 3 && status->signal == 0) {
      return fail(Errc::already_exists, "this attempt was started before", folder.string());
    }
    if (!status->success()) {
      return fail(Errc::unavailable, "the local supervisor did not start: " + status->describe(),
                  (folder / "supervisor.log").string());
    }
    return Submission{request.nonce, {}};
  }

  Result<std::vector<Job>> find(const std::string& nonce) override {
    std::vector<Job> found;
    if (!usable_name(nonce) || !fs::exists(options_.folder / nonce / "request.json")) return found;
    auto job = read_job(options_.folder / nonce);
    if (!job) return tl::unexpected(job.error());
    if (*job) found.push_back(std::move(**job));
    return found;
  }

  Result<void> would_accept(const JobRequest& request) override {
    if (request.reservation == "local") return {};
    return fail(Errc::refused, "no reservation '" + request.reservation + "' on this machine");
  }

  Result<void> cancel(const std::string& job_id, const std::string& nonce) override {
    const fs::path folder = options_.folder / job_id;
    if (job_id != nonce || !usable_name(job_id) || !fs::exists(folder)) return {};
    if (auto written = write_file_atomic(folder / "cancel", ""); !written) return written;
    const auto started = local::read_started(folder);
    if (!started) return tl::unexpected(started.error());
    // While the lock is held the pid is the supervisor's and cannot have been given to another.
    if (*started && (*started)->pid > 0 && local::is_alive(folder)) {
      ::kill((*started)->pid, SIGTERM);
    }
    return {};
  }

 private:
  /// Nothing when the request was written and the job never started: then there is no job.
  Result<std::optional<Job>> read_job(const fs::path& folder) const {
    const auto request = local::read_request(folder);
    if (!request) return tl::unexpected(request.error());
    const bool alive = local::is_alive(folder);  // before `ended`, which is written while alive
    const auto started = local::read_started(folder);
    if (!started) return tl::unexpected(started.error());
    const auto ended = local::read_ended(folder);
    if (!ended) return tl::unexpected(ended.error());

    Job job;
    job.id = request->nonce;
    job.name = request->name;
    job.nonce = request->nonce;
    job.reservation = kReservation;
    job.user = options_.user;
    job.submit_time = request->submit_time;
    job.time_limit = request->time_limit;
    if (*started) {
      job.start_time = (*started)->time;
      job.nodes = {options_.host};
    }
    if (*ended) {
      job.state = (*ended)->state;
      job.reason = (*ended)->reason;
      job.exit_code = (*ended)->exit_code;
      job.signal = (*ended)->signal;
      job.end_time = (*ended)->time;
    } else if (alive) {
      job.state = *started ? JobState::running : JobState::pending;
    } else if (*started) {
      job.state = JobState::node_fail;
      job.reason = "the job's supervisor is gone: killed, or the machine was restarted";
    } else {
      return std::optional<Job>();
    }
    return std::optional<Job>(std::move(job));
  }

  std::optional<Job> foreign_holder() const {
    if (!fs::exists(options_.machine_lock)) return std::nullopt;
    if (auto lock = FileLock::acquire(options_.machine_lock, false);
        lock || lock.error().code != Errc::busy) {
      return std::nullopt;
    }
    Job job;
    job.id = "other";
    job.name = "a run of another state folder";
    job.state = JobState::running;
    job.nodes = {options_.host};
    return job;
  }

  LocalOptions options_;
  Clock& clock_;
};

}  // namespace

std::unique_ptr<Scheduler> make_local(LocalOptions options, Clock& clock) {
  return std::make_unique<Local>(std::move(options), clock);
}

}  // namespace qualify::scheduler
