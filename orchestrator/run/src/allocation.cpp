#include "allocation.hpp"

#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "claim.hpp"
#include "qualify/base/files.hpp"
#include "qualify/run/evidence.hpp"
#include "qualify/run/job_plan.hpp"
#include "qualify/run/watch.hpp"
#include "qualify/scheduler/pace.hpp"

namespace qualify::run {

namespace {

using scheduler::Job;
using scheduler::JobState;

/// Between two looks for a job that may exist.
constexpr Duration kLookPause = std::chrono::seconds(2);

/// How often, at most, a live job's reservation is looked at while the job itself does not change.
constexpr Duration kReservationPoll = std::chrono::seconds(10);

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

/// What a job cost, by the scheduler's own times; of `shares` runs that shared it, one's part.
Json cost_of(const Job* job, std::uint32_t gpus_per_node, std::size_t shares) {
  double seconds = 0;
  if (job != nullptr && job->start_time && job->end_time && *job->end_time > *job->start_time) {
    seconds = std::chrono::duration<double>(*job->end_time - *job->start_time).count();
  }
  const double nodes = job == nullptr ? 0 : static_cast<double>(job->nodes.size());
  const double node_seconds = seconds * nodes / static_cast<double>(shares);
  return {{"node_seconds", node_seconds}, {"gpu_seconds", node_seconds * gpus_per_node}};
}

/// How each run of a shared job ended. The scheduler says one thing of all of them: where it says
/// failed, and another run's own result says that it was the one, this one is as good as its own
/// result.
std::vector<Assessment> assess_all(const Job& job,
                                   const std::vector<Result<std::optional<Sentinel>>>& results,
                                   const std::string& nonce, const Digest& bundle) {
  std::vector<Assessment> how;
  const auto failed = std::find_if(results.begin(), results.end(), [](const auto& result) {
    return result && *result && !(*result)->failure.empty();
  });
  for (const auto& result : results) {
    if (!result) {
      how.push_back({false, result.error().describe(), FailureClass::disagreement});
      continue;
    }
    const bool others_failure = job.state == JobState::failed && failed != results.end() &&
                                (!*result || (*result)->failure.empty());
    if (others_failure && !*result) {
      how.push_back({false, "not begun: a run before it in the same allocation failed",
                     assess(job, **failed, nonce, bundle).failure_class});
    } else if (others_failure) {
      Job own = job;
      own.state = JobState::completed;
      how.push_back(assess(own, *result, nonce, bundle));
    } else {
      how.push_back(assess(job, *result, nonce, bundle));
    }
  }
  return how;
}

}  // namespace

Allocation::Allocation(const Context& context, QualificationState& state, std::size_t first,
                       std::size_t last, std::size_t stage)
    : context_(context),
      state_(state),
      first_(first),
      last_(last),
      start_(context, state, state.runs[first], plan::requirement(state.plan, first, stage)) {}

Result<void> Allocation::drive() {
  for (;;) {
    if (lead().attempts.empty() || attempt().ended) {
      if (!wants_attempt(runs())) return {};
      if (context_.ports.stop() != Stop::none) {
        return fail(Errc::interrupted, "stopped before run '" + lead().run.id + "'; no job is live",
                    state_.name, kGoOn);
      }
      if (auto begun = begin_attempt(); !begun) return begun;
    }
    if (attempt().job_id.empty()) {
      if (auto there = ensure_submitted(); !there) return there;
    }
    if (!attempt().ended) {
      if (auto done = follow(); !done) return done;
    }
  }
}

Result<void> Allocation::begin_attempt() {
  if (!context_.request.may_submit) {
    return fail(Errc::refused,
                "its grant was revoked, or another one followed; nothing more is submitted",
                "run '" + lead().run.id + "' of " + state_.name,
                "what is there is kept; give it up with: qualify cancel " + state_.plan.gate);
  }
  const int number = static_cast<int>(lead().attempts.size()) + 1;
  auto nodes = start_.wait([&](const std::vector<std::string>& wanted) {
    return job_request("preflight", number, wanted);
  });
  if (!nodes) return tl::unexpected(nodes.error());
  nodes_ = std::move(*nodes);
  const std::string nonce = make_nonce();
  // Committed before anything can exist that carries it.
  Json payload = {{"nonce", nonce}};
  if (!nodes_.empty()) payload["nodes"] = nodes_;
  auto noted = record(event::kIntent, number, std::vector<Json>(runs().size(), payload));
  if (!noted) return noted;
  intended_here_ = number;
  return {};
}

Result<void> Allocation::write_job_plans() const {
  std::vector<std::filesystem::path> files;
  for (const RunState& run : runs()) files.push_back(folder_of(run) / kJobPlanFile);
  const plan::Plan& plan = state_.plan;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const RunState& run = runs()[i];
    JobPlan job;
    job.qualification = state_.name;
    job.gate = plan.gate;
    job.run = run.run.id;
    job.attempt = attempt().number;
    job.nonce = attempt().nonce;
    job.bundle = plan.bundle;
    job.store = std::filesystem::absolute(context_.state.bundles.root());
    job.folder = folder_of(run);
    job.arm = run.run.arm;
    job.seed = run.run.seed;
    job.scheduler = plan.scheduler;
    job.reservation = plan.reservation;
    job.granted_nodes = context_.request.grant.reservation.nodes;
    job.nodes = plan.topology.nodes;
    job.tasks_per_node = plan.tasks_per_node;
    job.gpus_per_node = plan.topology.gpus_per_node;
    for (const RunState& from : state_.runs) {
      if (run.run.resumes.empty() || from.run.id != run.run.resumes) continue;
      job.checkpoint = folder_of(from) / "output" / plan.checkpoint;
      job.checkpoint_iteration = plan.from_iteration;
    }
    const auto& capture = context_.request.gate.localization.capture;
    if (capture) job.capture_plan = job.folder / kCapturePlanFile;
    if (i == 0) job.further.assign(files.begin() + 1, files.end());
    if (auto made = make_folders(job.folder); !made) return made;
    if (capture) {
      const std::string text = canonical_bytes(traces::to_json(capture->plan));
      if (auto written = write_file_atomic(job.capture_plan, text, 0444); !written) {
        return written;
      }
    }
    if (auto written = write_file_atomic(files[i], to_json(job).dump(1), 0444); !written) {
      return written;
    }
  }
  return {};
}

scheduler::JobRequest Allocation::job_request(const std::string& nonce, int number,
                                              const std::vector<std::string>& nodes) const {
  const plan::Plan& plan = state_.plan;
  const auto folder = attempt_folder(context_, state_.name, lead().run.id, number);
  scheduler::JobRequest request;
  request.nonce = nonce;
  request.name = "qualify:" + plan.gate + ":" + lead().run.id;
  request.executable = context_.ports.executable;
  request.plan_file = (folder / kJobPlanFile).string();
  request.folder = folder.string();
  request.environment = context_.ports.environment;
  request.nodes = plan.topology.nodes;
  request.tasks_per_node = plan.tasks_per_node;
  request.gpus_per_node = plan.topology.gpus_per_node;
  request.pinned_nodes = nodes;
  request.reservation = plan.reservation;
  request.partition = context_.request.grant.reservation.partition;
  request.time_limit = plan.run_limit * static_cast<Duration::rep>(runs().size());
  request.deadline = context_.request.grant.reservation.end;
  return request;
}

std::filesystem::path Allocation::folder_of(const RunState& run) const {
  return attempt_folder(context_, state_.name, run.run.id, run.attempts.back().number);
}

/// One attempt is one job: what was intended before this process began, or was not answered, is
/// looked for and adopted; it is never submitted a second time.
Result<void> Allocation::ensure_submitted() {
  if (attempt().number != intended_here_) return adopt_or_withdraw(Duration::zero());
  if (auto written = write_job_plans(); !written) return written;
  const auto submission =
      context_.ports.scheduler.submit(job_request(attempt().nonce, attempt().number, nodes_));
  if (submission) return submitted(submission->job_id, submission->warnings);
  if (submission.error().code == Errc::refused) {
    // No job exists: the attempt is over, and so is the run, for asking again changes nothing.
    if (auto noted = end_without_job(
            {false, "submit refused: " + submission.error().message, FailureClass::cancelled});
        !noted) {
      return noted;
    }
  }
  if (submission.error().code == Errc::unavailable) {
    auto noted = record(event::kUnanswered, {{"error", submission.error().describe()}});
    if (!noted) return noted;
    return adopt_or_withdraw(context_.ports.limits.look_for_lost);
  }
  return tl::unexpected(submission.error());
}

/// Looks for the attempt's job for `patience`, and at least once. Whether it was there, and is
/// recorded.
Result<bool> Allocation::adopt(Duration patience) {
  Duration looked{};
  Duration silent{};
  for (;;) {
    const auto found = context_.ports.scheduler.find(attempt().nonce);
    if (found && found->size() > 1) {
      return fail(Errc::integrity, "two jobs carry the nonce of one attempt", attempt().nonce);
    }
    if (found && found->size() == 1) {
      return submitted(found->front().id, {}).map([] { return true; });
    }
    if (!found &&
        (found.error().code != Errc::unavailable || silent >= context_.ports.limits.silence)) {
      return tl::unexpected(found.error());
    }
    if (found && looked >= patience) return false;
    if (context_.ports.stop() != Stop::none) return interrupted(state_.name, false);
    (found ? looked : silent) += kLookPause;
    context_.ports.clock.sleep_for(kLookPause);
  }
}

/// If there is no job, takes the attempt's folder, so that one that appears later finds it taken
/// and does nothing.
Result<void> Allocation::adopt_or_withdraw(Duration patience) {
  const auto adopted = adopt(patience);
  if (!adopted) return tl::unexpected(adopted.error());
  if (*adopted) return {};
  // The first run's folder stands for all: a job claims that one before it does anything.
  const auto folder = folder_of(lead());
  if (auto made = make_folders(folder); !made) return made;
  if (auto claimed = withdraw_attempt(folder); !claimed) {
    if (claimed.error().code != Errc::already_exists) return claimed;
    if (!is_unnamed_claim(folder)) return adopt_from_accounting();
    // A job that is about to write its name is live, and the scheduler knows it by now. Otherwise
    // whoever made the claim died with it, and no job can make it its own any more.
    const auto late = adopt(context_.ports.limits.slow_files);
    if (!late) return tl::unexpected(late.error());
    if (*late) return {};
    if (!is_unnamed_claim(folder)) return adopt_from_accounting();
  }
  // Left by an earlier process it costs nothing; not answered to this one, it counts.
  return end_without_job(
      {false, "no job came of the submission",
       patience > Duration::zero() ? FailureClass::infrastructure : FailureClass::cancelled});
}

Result<void> Allocation::submitted(const std::string& job_id,
                                   const std::vector<std::string>& warnings) {
  return record(event::kSubmitted, {{"job_id", job_id}, {"warnings", warnings}});
}

/// Watches the live job to its end.
Result<void> Allocation::follow() {
  scheduler::Pace pace;
  std::string last;  ///< the job as it was seen last
  Duration silent{};
  Duration completing{};  ///< for how long the job has been
  bool cancelling = false;
  asked_accounting_ = Duration::zero();
  heartbeats_.clear();
  for (const RunState& run : runs()) {
    heartbeats_.emplace_back(folder_of(run), context_.bundle.outputs,
                             context_.request.gate.heartbeat);
  }
  for (;;) {
    const Stop stop = context_.ports.stop();
    if (stop == Stop::detach) return interrupted(state_.name, false);
    if (stop == Stop::cancel && !cancelling) {
      if (auto done = context_.ports.scheduler.cancel(attempt().job_id, attempt().nonce); !done) {
        return done;
      }
      cancelling = true;
    }
    const Duration pause = pace.pause();
    const Time asked = context_.ports.clock.now();
    auto job = look(pause);
    if (job) {
      completing = job->state == JobState::completing ? completing + pause : Duration::zero();
      if (completing >= context_.ports.limits.completing) stop_waiting_for_nodes(*job);
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
      if (job->state == JobState::running && !attempt().running_seen) {
        if (auto noted = record(event::kRunning, {{"job", to_json(*job)}}); !noted) return noted;
      }
      const bool lost = job->state == JobState::unknown && !accounting_may_tell_;
      if (is_terminal(job->state) || lost) {
        if (auto noted = end_with(*job); !noted) return noted;
        if (cancelling) return interrupted(state_.name, true);
        // Whoever cancelled it meant it: only a person's next command starts it again.
        if (attempt().failure_class == FailureClass::cancelled) {
          return fail(
              Errc::interrupted,
              "run '" + lead().run.id + "': " + attempt().failure + ", and not by this qualify",
              state_.name, kGoOn);
        }
        return {};
      }
    }
    context_.ports.clock.sleep_for(pace.pause());
  }
}

/// Its work is over: only its nodes are not clear, and may never be.
void Allocation::stop_waiting_for_nodes(Job& job) const {
  if (!is_terminal(job.ended_as)) return;
  job.state = job.ended_as;
  job.reason += (job.reason.empty() ? "" : "; ") + std::string("still completing after ") +
                format_duration(context_.ports.limits.completing);
}

/// The attempt's job, by the scheduler's word or, when that has forgotten it, by accounting's.
/// State unknown: nobody knows, or accounting_may_tell_ soon. `pause`: since the last look.
Result<Job> Allocation::look(Duration pause) {
  auto found = context_.ports.scheduler.find(attempt().nonce);
  if (!found) return tl::unexpected(found.error());
  accounting_may_tell_ = false;
  if (!found->empty()) return std::move(found->front());
  auto told = ask_accounting();
  if (!told) return tl::unexpected(told.error());
  if (told->over) return std::move(*told->over);
  asked_accounting_ += pause;
  accounting_may_tell_ = told->may_come && asked_accounting_ < context_.ports.limits.accounting;
  Job gone;
  gone.id = attempt().job_id;
  gone.nonce = attempt().nonce;
  gone.state = JobState::unknown;
  gone.reason = "the scheduler does not know the job any more; " + told->reason;
  return gone;
}

Result<AccountedJob> Allocation::ask_accounting() const {
  return run::ask_accounting(context_.ports.scheduler, context_.request.grant,
                             job_request(attempt().nonce, attempt().number, {}).name,
                             attempt().nonce);
}

/// The attempt's job has begun its work, and the scheduler has forgotten it before its number was
/// recorded. Without accounting's word its result, if any, cannot be confirmed.
Result<void> Allocation::adopt_from_accounting() {
  for (Duration asked{};; asked += kLookPause) {
    const auto told = ask_accounting();
    if (!told) return tl::unexpected(told.error());
    if (!told->id.empty()) return submitted(told->id, {});
    if (!told->may_come || asked >= context_.ports.limits.accounting) {
      return end_without_job(
          {false, "the job ran, but the scheduler does not know it any more; " + told->reason,
           FailureClass::disagreement});
    }
    if (context_.ports.stop() != Stop::none) return interrupted(state_.name, false);
    context_.ports.clock.sleep_for(kLookPause);
  }
}

/// Contract step 5, at every change of the job and every few seconds: in its grant and making
/// progress, or cancelled.
Result<void> Allocation::hold_to_grant(const Job& job, Duration pause) {
  if (is_terminal(job.state) || job.state == JobState::unknown) return {};
  scheduler::Scheduler& scheduler = context_.ports.scheduler;
  if (attempt().breach.empty() && job.state == JobState::running) {
    if (const auto why = hung()) {
      if (auto noted = break_off(job, *why, FailureClass::workload); !noted) return noted;
    }
  }
  if (attempt().breach.empty()) {
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
    if (auto noted = break_off(job, *why, FailureClass::infrastructure); !noted) return noted;
  }
  if (auto done = scheduler.cancel(job.id, job.nonce);
      !done && done.error().code != Errc::unavailable) {
    return done;
  }
  return {};
}

/// Of the run that is under way: the first that has left no result yet.
std::optional<std::string> Allocation::hung() {
  for (std::size_t i = 0; i < runs().size(); ++i) {
    if (std::filesystem::exists(folder_of(runs()[i]) / kSentinelFile)) continue;
    return heartbeats_[i].hung(context_.ports.clock.now());
  }
  return std::nullopt;
}

/// Recorded before the job is touched: whoever goes on after a crash knows why it ended.
Result<void> Allocation::break_off(const Job& job, const std::string& why,
                                   FailureClass failure_class) {
  return record(event::kBreach,
                {{"why", why}, {"failure_class", name_of(failure_class)}, {"job", to_json(job)}});
}

Result<void> Allocation::end_with(const Job& job) {
  const std::vector<RunState>::size_type count = runs().size();
  if (!attempt().breach.empty()) {
    return ended(&job,
                 std::vector<Assessment>(count, {false, attempt().breach, attempt().breach_class}));
  }
  if (const auto outside = against_grant(context_.request.grant, job)) {
    return ended(&job, std::vector<Assessment>(count, *outside));
  }
  if (job.state == JobState::completed || job.state == JobState::failed) {
    if (auto seen = wait_for_results(); !seen) return seen;
  }
  std::vector<Result<std::optional<Sentinel>>> results;
  for (const RunState& run : runs()) results.push_back(read_sentinel(folder_of(run)));
  return ended(&job, assess_all(job, results, attempt().nonce, state_.plan.bundle));
}

/// The scheduler's word may come before a shared file system shows here what the nodes wrote last.
/// What is not there after a while is missing. Before that nobody knows: a stop leaves the attempt
/// to whoever goes on; one that is to leave nothing live has nothing left to end.
Result<void> Allocation::wait_for_results() const {
  if (state_.plan.scheduler == "local") return {};  // written on this very machine
  for (Duration waited{}; waited < context_.ports.limits.slow_files && !sees_all_results();
       waited += kLookPause) {
    if (context_.ports.stop() == Stop::detach) {
      return fail(Errc::interrupted,
                  "detached; the job has ended, and its results are not visible here yet",
                  state_.name, kGoOn);
    }
    context_.ports.clock.sleep_for(kLookPause);
  }
  return {};
}

bool Allocation::sees_all_results() const {
  for (const RunState& run : runs()) {
    const auto folder = folder_of(run);
    const auto result = read_sentinel(folder);
    if (!result) return true;  // damaged: no waiting mends it
    if (!*result) return false;
    const auto sees = [&](const OutputFile& file) {
      std::error_code error;
      const auto size = std::filesystem::file_size(folder / file.path, error);
      return !error && size == file.size;
    };
    const auto& files = (*result)->files;
    if (!std::all_of(files.begin(), files.end(), sees)) return false;
    if (!(*result)->failure.empty()) return true;  // those that follow were not begun
  }
  return true;
}

Result<void> Allocation::end_without_job(const Assessment& how) {
  return ended(nullptr, std::vector<Assessment>(runs().size(), how));
}

Result<void> Allocation::ended(const Job* job, const std::vector<Assessment>& how) {
  const Json cost = cost_of(job, state_.plan.topology.gpus_per_node, runs().size());
  std::vector<Json> payloads;
  for (const Assessment& one : how) {
    payloads.push_back({{"job", job != nullptr ? to_json(*job) : Json(nullptr)},
                        {"complete", one.complete},
                        {"failure", one.failure},
                        {"failure_class", name_of(one.failure_class)},
                        {"cost", cost}});
  }
  return record(event::kEnded, attempt().number, std::move(payloads));
}

Result<void> Allocation::record(const char* kind, const Json& payload) {
  return record(kind, attempt().number, std::vector<Json>(runs().size(), payload));
}

Result<void> Allocation::record(const char* kind, int number, std::vector<Json> payloads) {
  std::vector<Recorder::Entry> entries;
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    entries.push_back({runs()[i].run.id, number, std::move(payloads[i])});
  }
  const auto recorded = context_.recorder.append_all(state_.name, kind, entries);
  if (!recorded) return tl::unexpected(recorded.error());
  for (const journal::Event& event : *recorded) {
    if (auto taken = apply(state_, event); !taken) return taken;
  }
  return {};
}

}  // namespace qualify::run
