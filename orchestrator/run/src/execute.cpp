#include "execute.hpp"

#include <openssl/rand.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "qualify/base/files.hpp"
#include "qualify/run/evidence.hpp"
#include "qualify/run/job_plan.hpp"
#include "qualify/run/watch.hpp"
#include "qualify/scheduler/pace.hpp"

namespace qualify::run {

namespace {

using scheduler::Job;
using scheduler::JobState;

/// Between two looks for what may pass by itself, or for a job that may exist.
constexpr Duration kSlowestPoll = std::chrono::seconds(2);

/// The controller's clock has whole seconds: so often is its start of a reservation looked for.
constexpr Duration kNearStart = std::chrono::milliseconds(200);

/// How often, at most, a live job's reservation is looked at while the job itself does not change.
constexpr Duration kReservationPoll = std::chrono::seconds(10);

constexpr const char* kGoOn = "go on with the same 'qualify run' command";

/// 128 random bits: two jobs of one attempt must be told from two attempts for ever.
std::string make_nonce() {
  std::array<std::uint8_t, 16> bytes{};
  RAND_bytes(bytes.data(), static_cast<int>(bytes.size()));
  return "q" + to_hex(bytes);
}

Unexpected interrupted(const std::string& name, bool cancelled) {
  return fail(Errc::interrupted,
              cancelled ? "stopped; the live job was cancelled" : "detached; the live job goes on",
              name, kGoOn);
}

fs::path attempt_folder(const Context& context, const std::string& name, const std::string& run,
                        int attempt) {
  return fs::absolute(context.state.paths.runs()) / name / run /
         ("attempt-" + std::to_string(attempt));
}

/// Executes one run of the plan: its attempts, one after the other.
class RunDriver {
 public:
  /// `index`: of the run in the plan; `stage`: how many runs the present stage ends after.
  RunDriver(const Context& context, std::string name, const plan::Plan& plan, RunState run,
            std::size_t index, std::size_t stage)
      : context_(context),
        name_(std::move(name)),
        plan_(plan),
        run_(std::move(run)),
        needed_(plan::requirement(plan, index, stage)) {}

  Result<void> drive() {
    for (;;) {
      if (run_.attempts.empty() || run_.attempts.back().ended) {
        if (!wants_attempt()) return {};
        if (context_.ports.stop() != Stop::none) {
          return fail(Errc::interrupted, "stopped before run '" + run_.run.id + "'; no job is live",
                      name_, kGoOn);
        }
        if (auto allowed = preflight_patiently(); !allowed) return allowed;
        if (auto made = intend(); !made) return made;
      }
      if (run_.attempts.back().job_id.empty()) {
        if (auto there = ensure_submitted(); !there) return there;
      }
      if (!run_.attempts.back().ended) {
        if (auto ended = follow(); !ended) return ended;
      }
    }
  }

 private:
  bool wants_attempt() const {
    if (run_.attempts.empty()) return true;
    const Attempt& last = run_.attempts.back();
    if (last.complete) return false;
    if (last.failure_class == FailureClass::cancelled) return true;
    const auto failures =
        std::count_if(run_.attempts.begin(), run_.attempts.end(), [](const Attempt& attempt) {
          return attempt.failure_class == FailureClass::infrastructure;
        });
    return last.failure_class == FailureClass::infrastructure && failures < kMaxAttempts;
  }

  /// What may pass by itself is waited for: before a first start as long as was asked for, between
  /// the runs of a plan because it is no reason to give the reservation up.
  Result<void> preflight_patiently() {
    const bool under_way = !run_.attempts.empty() || plan_.runs.front().id != run_.run.id;
    const Limits& limits = context_.ports.limits;
    const Duration patience = under_way ? limits.settle : limits.start_wait;
    for (Duration waited{}, pause{};; waited += pause) {
      auto allowed = preflight();
      if (allowed || !faults_may_pass_ || waited >= patience ||
          context_.ports.stop() != Stop::none) {
        return allowed;
      }
      pause = std::clamp(until_start_, kNearStart, kSlowestPoll);
      context_.ports.clock.sleep_for(pause);
    }
  }

  Result<void> preflight() {
    faults_may_pass_ = false;
    until_start_ = kSlowestPoll;
    scheduler::Scheduler& scheduler = context_.ports.scheduler;
    const auto snapshot = scheduler::take_snapshot(scheduler);
    if (!snapshot) return tl::unexpected(snapshot.error());

    if (const Time start = context_.request.grant.reservation.start; start > snapshot->now) {
      until_start_ = start - snapshot->now;
    }
    std::vector<std::string> own;
    for (const Attempt& attempt : run_.attempts) own.push_back(attempt.nonce);
    auto faults = scheduler::preflight(context_.request.grant, needed_, *snapshot, own);
    // Who may use a reservation is the scheduler's to say, and it says so once it is active.
    if (faults.empty()) {
      Attempt asked;
      asked.nonce = "preflight";
      const auto accepted = scheduler.would_accept(job_request(asked));
      if (!accepted && accepted.error().code != Errc::refused) return accepted;
      if (!accepted) faults.push_back({"access", accepted.error().message, false});
    }
    Json list = Json::array();
    for (const scheduler::Fault& fault : faults) {
      list.push_back(
          {{"code", fault.code}, {"message", fault.message}, {"may_pass", fault.may_pass}});
    }
    // Recorded once, however often it is found: of a start in the future only the time left
    // differs.
    Json known = list;
    for (Json& fault : known) {
      if (fault.at("code") == "not-started") fault.erase("message");
    }
    if (known != last_faults_) {
      last_faults_ = std::move(known);
      if (auto noted = record(event::kPreflight, 0, {{"faults", std::move(list)}}); !noted) {
        return noted;
      }
    }
    if (faults.empty()) {
      last_faults_ = nullptr;
      return {};
    }
    faults_may_pass_ = std::all_of(faults.begin(), faults.end(),
                                   [](const scheduler::Fault& fault) { return fault.may_pass; });
    Error error{Errc::refused,
                faults.front().message,
                "reservation '" + plan_.reservation + "'",
                "nothing was submitted; run the same command again when it is cured",
                {}};
    for (std::size_t i = 1; i < faults.size(); ++i) {
      error.others.push_back({Errc::refused, faults[i].message, error.context, {}, {}});
    }
    return Unexpected(std::move(error));
  }

  Result<void> intend() {
    const int number = static_cast<int>(run_.attempts.size()) + 1;
    Attempt attempt;
    attempt.number = number;
    attempt.nonce = make_nonce();
    // Committed before anything can exist that carries it.
    if (auto noted = record(event::kIntent, number, {{"nonce", attempt.nonce}}); !noted) {
      return noted;
    }
    run_.attempts.push_back(std::move(attempt));
    intended_here_ = number;
    return {};
  }

  Result<void> write_job_plan(const Attempt& attempt, const fs::path& folder) const {
    if (auto made = make_folders(folder); !made) return made;
    JobPlan job;
    job.qualification = name_;
    job.gate = plan_.gate;
    job.run = run_.run.id;
    job.attempt = attempt.number;
    job.nonce = attempt.nonce;
    job.bundle = plan_.bundle;
    job.store = fs::absolute(context_.state.bundles.root());
    job.folder = folder;
    job.arm = run_.run.arm;
    job.seed = run_.run.seed;
    job.scheduler = plan_.scheduler;
    job.reservation = plan_.reservation;
    job.granted_nodes = context_.request.grant.reservation.nodes;
    job.nodes = plan_.topology.nodes;
    job.tasks_per_node = plan_.tasks_per_node;
    job.gpus_per_node = plan_.topology.gpus_per_node;
    return write_file_atomic(folder / kJobPlanFile, to_json(job).dump(1), 0444);
  }

  scheduler::JobRequest job_request(const Attempt& attempt) const {
    const fs::path folder = attempt_folder(context_, name_, run_.run.id, attempt.number);
    scheduler::JobRequest request;
    request.nonce = attempt.nonce;
    request.name = "qualify:" + plan_.gate + ":" + run_.run.id;
    request.executable = context_.ports.executable;
    request.plan_file = (folder / kJobPlanFile).string();
    request.folder = folder.string();
    request.environment = context_.ports.environment;
    request.nodes = plan_.topology.nodes;
    request.tasks_per_node = plan_.tasks_per_node;
    request.gpus_per_node = plan_.topology.gpus_per_node;
    request.reservation = plan_.reservation;
    request.partition = context_.request.grant.reservation.partition;
    request.time_limit = plan_.run_limit;
    request.deadline = context_.request.grant.reservation.end;
    return request;
  }

  /// One attempt is one job: what was intended before this process began, or was not answered, is
  /// looked for and adopted; it is never submitted a second time.
  Result<void> ensure_submitted() {
    Attempt& attempt = run_.attempts.back();
    if (attempt.number != intended_here_) return adopt_or_withdraw(Duration::zero());
    const fs::path folder = attempt_folder(context_, name_, run_.run.id, attempt.number);
    if (auto written = write_job_plan(attempt, folder); !written) return written;
    const scheduler::JobRequest request = job_request(attempt);
    const auto submission = context_.ports.scheduler.submit(request);
    if (submission) return submitted(submission->job_id, submission->warnings);
    if (submission.error().code == Errc::refused) {
      // No job exists: the attempt is over, and so is the run, for asking again changes nothing.
      if (auto noted = ended(nullptr, {false, "submit refused: " + submission.error().message,
                                       FailureClass::cancelled});
          !noted) {
        return noted;
      }
    }
    if (submission.error().code == Errc::unavailable) {
      if (auto noted = record(event::kUnanswered, attempt.number,
                              {{"error", submission.error().describe()}});
          !noted) {
        return noted;
      }
      return adopt_or_withdraw(context_.ports.limits.look_for_lost);
    }
    return tl::unexpected(submission.error());
  }

  /// Looks for the attempt's job for `patience`, and at least once; if there is none, takes the
  /// attempt's folder, so that a job that appears later finds it taken and does nothing.
  Result<void> adopt_or_withdraw(Duration patience) {
    const Attempt& attempt = run_.attempts.back();
    Duration looked{};
    Duration silent{};
    for (;;) {
      const auto found = context_.ports.scheduler.find(attempt.nonce);
      if (found && found->size() > 1) {
        return fail(Errc::integrity, "two jobs carry the nonce of one attempt", attempt.nonce);
      }
      if (found && found->size() == 1) return submitted(found->front().id, {});
      if (!found &&
          (found.error().code != Errc::unavailable || silent >= context_.ports.limits.silence)) {
        return tl::unexpected(found.error());
      }
      if (found && looked >= patience) break;
      if (context_.ports.stop() != Stop::none) return interrupted(name_, false);
      (found ? looked : silent) += kSlowestPoll;
      context_.ports.clock.sleep_for(kSlowestPoll);
    }
    const fs::path folder = attempt_folder(context_, name_, run_.run.id, attempt.number);
    if (auto made = make_folders(folder); !made) return made;
    if (auto claimed = withdraw_attempt(folder); !claimed) {
      if (claimed.error().code != Errc::already_exists) return claimed;
      // The job was there and has been forgotten since: its result, if any, cannot be confirmed.
      return ended(nullptr, {false, "the job ran, but the scheduler does not know it any more",
                             FailureClass::disagreement});
    }
    // Left by an earlier process it costs nothing; not answered to this one, it counts.
    return ended(nullptr, {false, "no job came of the submission",
                           patience > Duration::zero() ? FailureClass::infrastructure
                                                       : FailureClass::cancelled});
  }

  Result<void> submitted(const std::string& job_id, const std::vector<std::string>& warnings) {
    Attempt& attempt = run_.attempts.back();
    attempt.job_id = job_id;
    return record(event::kSubmitted, attempt.number, {{"job_id", job_id}, {"warnings", warnings}});
  }

  /// Watches the live job to its end.
  Result<void> follow() {
    Attempt& attempt = run_.attempts.back();
    scheduler::Pace pace;
    std::string last;  ///< the job as it was seen last
    Duration silent{};
    bool cancelling = false;
    for (;;) {
      const Stop stop = context_.ports.stop();
      if (stop == Stop::detach) return interrupted(name_, false);
      if (stop == Stop::cancel && !cancelling) {
        if (auto done = context_.ports.scheduler.cancel(attempt.job_id, attempt.nonce); !done) {
          return done;
        }
        cancelling = true;
      }
      const Duration pause = pace.pause();
      const Time asked = context_.ports.clock.now();
      const auto job = look(attempt);
      if (job) {
        std::string now = to_json(*job).dump();
        pace.answered(now != last, context_.ports.clock.now() - asked);
        last = std::move(now);
      } else {
        pace.failed();
      }
      if (!job) {
        // A failed query says nothing about the job: wait, touch nothing.
        silent += pause;
        if (job.error().code != Errc::unavailable || silent > context_.ports.limits.silence) {
          return tl::unexpected(job.error());
        }
      } else {
        silent = Duration::zero();
        if (!cancelling) {
          if (auto held = hold_to_grant(*job, pause); !held) return held;
        } else if (!is_terminal(job->state)) {
          // Again: the first may have been lost.
          (void)context_.ports.scheduler.cancel(job->id, job->nonce);
        }
        if (job->state == JobState::running && !attempt.running_seen) {
          attempt.running_seen = true;
          if (auto noted = record(event::kRunning, attempt.number, {{"job", to_json(*job)}});
              !noted) {
            return noted;
          }
        }
        if (is_terminal(job->state) || job->state == JobState::unknown) {
          if (auto noted = end_with(*job); !noted) return noted;
          if (cancelling) return interrupted(name_, true);
          // Whoever cancelled it meant it: only a person's next command starts it again.
          if (run_.attempts.back().failure_class == FailureClass::cancelled) {
            return fail(Errc::interrupted,
                        "run '" + run_.run.id + "': " + run_.attempts.back().failure +
                            ", and not by this qualify",
                        name_, kGoOn);
          }
          return {};
        }
      }
      context_.ports.clock.sleep_for(pace.pause());
    }
  }

  /// Contract step 5, at every change of the job and every few seconds: in its grant, or cancelled.
  Result<void> hold_to_grant(const Job& job, Duration pause) {
    scheduler::Scheduler& scheduler = context_.ports.scheduler;
    if (is_terminal(job.state) || job.state == JobState::unknown) return {};
    if (breached_.empty()) {
      since_check_ += pause;
      const std::string seen = to_json(job).dump();
      if (seen == last_seen_ && since_check_ < kReservationPoll) return {};
      const auto reservations = scheduler.reservations();
      const auto now = scheduler.now();
      if (!reservations || !now) return {};  // says nothing about the job: asked again soon
      last_seen_ = seen;
      since_check_ = Duration::zero();
      const auto why = breach(context_.request.grant, job, *now, *reservations,
                              context_.ports.limits.pending_patience);
      if (!why) return {};
      breached_ = *why;
      if (auto noted = record(event::kBreach, run_.attempts.back().number,
                              {{"why", breached_}, {"job", to_json(job)}});
          !noted) {
        return noted;
      }
    }
    if (auto done = scheduler.cancel(job.id, job.nonce);
        !done && done.error().code != Errc::unavailable) {
      return done;
    }
    return {};
  }

  Result<Job> look(const Attempt& attempt) {
    auto found = context_.ports.scheduler.find(attempt.nonce);
    if (!found) return tl::unexpected(found.error());
    if (found->empty()) {
      Job gone;
      gone.id = attempt.job_id;
      gone.nonce = attempt.nonce;
      gone.state = JobState::unknown;
      gone.reason = "the scheduler does not know the job any more";
      return gone;
    }
    return std::move(found->front());
  }

  Result<void> end_with(const Job& job) {
    const Attempt& attempt = run_.attempts.back();
    const fs::path folder = attempt_folder(context_, name_, run_.run.id, attempt.number);
    if (!breached_.empty()) {
      return ended(&job, {false, std::exchange(breached_, {}), FailureClass::infrastructure});
    }
    if (const auto outside = against_grant(context_.request.grant, job)) {
      return ended(&job, *outside);
    }
    const auto sentinel = read_sentinel(folder);
    if (!sentinel) {
      return ended(&job, {false, sentinel.error().describe(), FailureClass::disagreement});
    }
    return ended(&job, assess(job, *sentinel, attempt.nonce, plan_.bundle));
  }

  Result<void> ended(const Job* job, const Assessment& how) {
    Attempt& attempt = run_.attempts.back();
    attempt.ended = true;
    attempt.complete = how.complete;
    attempt.failure = how.failure;
    attempt.failure_class = how.failure_class;
    return record(event::kEnded, attempt.number,
                  {{"job", job != nullptr ? to_json(*job) : Json(nullptr)},
                   {"complete", how.complete},
                   {"failure", how.failure},
                   {"failure_class", name_of(how.failure_class)}});
  }

  Result<void> record(const char* kind, int attempt, const Json& payload) {
    return context_.recorder.append(name_, run_.run.id, attempt, kind, payload);
  }

  const Context& context_;
  std::string name_;
  const plan::Plan& plan_;
  RunState run_;
  scheduler::Requirement needed_;  ///< this run and all that follow it in its stage must still fit
  int intended_here_ = 0;          ///< the attempt that this process began, which has no job yet
  std::string breached_;           ///< why the live job is being cancelled; empty while all is well
  Duration until_start_{};         ///< of the reservation, by the controller's clock
  bool faults_may_pass_ = false;   ///< of the last preflight: all of them
  Json last_faults_;               ///< as recorded last; null = none
  std::string last_seen_;  ///< the live job as it was when its reservation was last looked at
  Duration since_check_{};
};

}  // namespace

Result<QualificationState> execute(const Context& context, const std::string& name,
                                   std::size_t runs) {
  auto state = context.recorder.state_of(name);
  if (!state) return state;
  runs = std::min(runs, state->runs.size());
  for (std::size_t i = 0; i < runs; ++i) {
    if (auto done = RunDriver(context, name, state->plan, state->runs[i], i, runs).drive(); !done) {
      return tl::unexpected(done.error());
    }
  }
  return context.recorder.state_of(name);
}

Result<bool> window_allows(const Context& context, const QualificationState& state,
                           std::size_t runs) {
  const auto done = static_cast<std::size_t>(
      std::count_if(state.runs.begin(), state.runs.end(),
                    [](const RunState& run) { return run.evidence.has_value(); }));
  if (done >= runs) return true;
  const auto begun =
      std::any_of(state.runs.begin() + static_cast<std::ptrdiff_t>(done), state.runs.end(),
                  [](const RunState& run) { return !run.attempts.empty(); });
  if (begun) return true;  // decided already, by the process that began it
  const auto now = context.ports.scheduler.now();
  if (!now) return tl::unexpected(now.error());
  const Duration needed = state.plan.duration(done, runs);
  const Time end = context.request.grant.reservation.end;
  if (*now + needed <= end) return true;
  const Duration left = std::max(Duration::zero(), end - *now);
  const std::string why = std::to_string(runs - done) + " further runs need " +
                          format_duration(needed) + ", " + format_duration(left) +
                          " are left of the reservation";
  if (auto noted = context.recorder.append(state.name, {}, 0, event::kWindowClosed, {{"why", why}});
      !noted) {
    return tl::unexpected(noted.error());
  }
  return false;
}

Result<QualificationState> collect_all(const Context& context, const QualificationState& executed) {
  for (const RunState& run : executed.runs) {
    if (run.evidence || run.attempts.empty()) continue;
    const Attempt& last = run.attempts.back();
    const EvidenceRequest request{executed.name,
                                  executed.plan.gate,
                                  run.run,
                                  last,
                                  attempt_folder(context, executed.name, run.run.id, last.number),
                                  executed.plan_digest};
    const auto manifest = collect(request, context.bundle, context.state.evidence);
    if (!manifest) return tl::unexpected(manifest.error());
    if (auto noted = context.recorder.append(executed.name, run.run.id, last.number,
                                             event::kEvidence, {{"digest", manifest->str()}});
        !noted) {
      return tl::unexpected(noted.error());
    }
  }
  return context.recorder.state_of(executed.name);
}

}  // namespace qualify::run
