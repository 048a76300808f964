#include "qualify/scheduler/fake.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace qualify::scheduler {

namespace {

struct Entry {
  JobRequest request;
  FakeJob plan;
  Job job;
  bool start_told = false;
  bool end_told = false;
};

}  // namespace

struct Fake::State {
  FakeScript script;
  Clock& clock;
  Observer observer;
  std::vector<Entry> entries;
  std::vector<Job> forgotten;
  std::size_t submissions = 0;
  std::uint32_t next_id = 1;
  Time reached{};  ///< everything up to here has happened

  Result<void> is_up(const std::vector<Outage>& outages, const char* what) const {
    const Time now = clock.now();
    for (const Outage& outage : outages) {
      if (outage.from <= now && now < outage.to) {
        return fail(Errc::unavailable,
                    std::string(what) + " is down until " + format_time(outage.to));
      }
    }
    return {};
  }

  /// Nothing while the controller is out. Errors: unavailable.
  Result<void> reach() {
    if (auto up = is_up(script.outages, "the fake controller"); !up) return up;
    advance(clock.now());
    return {};
  }

  /// The job as accounting knows it, which hears of everything so much later; nothing: of nothing.
  static std::optional<Job> as_accounted(Job job, Time heard_until) {
    if (*job.submit_time > heard_until) return std::nullopt;
    job.accounted = true;
    // Accounting has no such state: it hears of the end when the work ends.
    if (job.state == JobState::completing) {
      job.state = std::exchange(job.ended_as, JobState::unknown);
    }
    if (job.end_time && *job.end_time > heard_until) {
      job.end_time.reset();
      job.exit_code = job.signal = 0;
      job.reason.clear();
      job.state = JobState::running;
    }
    if (job.start_time && *job.start_time > heard_until) {
      job.start_time.reset();
      job.nodes.clear();
      job.state = JobState::pending;
    }
    return job;
  }

  const Reservation* reservation(const std::string& name) const {
    const auto found =
        std::find_if(script.reservations.begin(), script.reservations.end(),
                     [&](const Reservation& candidate) { return candidate.name == name; });
    return found == script.reservations.end() ? nullptr : &*found;
  }

  /// Carries every job to `now`, event by event in the order of time: what ends makes room for what
  /// waits, not before.
  void advance(Time now) {
    for (;;) {
      std::optional<Time> next;
      for (const Entry& entry : entries) {
        const Time at = next_event(entry);
        if (at > reached && at <= now && (!next || at < *next)) next = at;
      }
      if (!next) break;
      settle(*next);
    }
    settle(now);  // and what was changed from outside
    std::erase_if(entries, [&](const Entry& entry) {
      const bool forget = is_terminal(entry.job.state) && entry.job.end_time &&
                          *entry.job.end_time + script.remembered <= now;
      if (forget) forgotten.push_back(entry.job);
      return forget;
    });
  }

  void settle(Time at) {
    for (bool changed = true; changed;) {
      changed = false;
      for (Entry& entry : entries) changed = step(entry, at) || changed;
    }
    reached = std::max(reached, at);
  }

  /// When this job next starts, ends or loses its reservation by itself.
  Time next_event(const Entry& entry) const {
    if (entry.job.state == JobState::running) return ending(entry).at;
    if (entry.job.state == JobState::completing) return cleared(entry);
    const Reservation* held = reservation(entry.request.reservation);
    if (entry.job.state != JobState::pending || held == nullptr) return Time::max();
    const Time from = may_start(entry, *held);
    return from > reached ? std::min(from, held->end) : held->end;
  }

  /// When its nodes are free again.
  static Time cleared(const Entry& entry) { return *entry.job.end_time + entry.plan.completing; }

  static Time may_start(const Entry& entry, const Reservation& held) {
    return std::max(*entry.job.submit_time, held.start) + entry.plan.wait;
  }

  bool step(Entry& entry, Time now) {
    switch (entry.job.state) {
      case JobState::pending:
        return try_start(entry, now);
      case JobState::running:
        return try_end(entry, now);
      case JobState::completing:
        if (cleared(entry) > now) return false;
        entry.job.state = std::exchange(entry.job.ended_as, JobState::unknown);
        return true;
      default:
        return false;
    }
  }

  bool try_start(Entry& entry, Time now) {
    Job& job = entry.job;
    if (job.held_by_reservation_end) return false;
    const Reservation* held = reservation(entry.request.reservation);
    if (held == nullptr || held->end <= now) {
      // Seen too late to know whether it could have run before: it did not.
      job.held_by_reservation_end = true;
      job.reservation.clear();
      job.reason = "ReservationDeleted";
      return true;
    }
    if (may_start(entry, *held) > now) {
      job.reason = held->start > now ? "Reservation" : "Priority";
      return false;
    }
    std::vector<std::string> chosen = choose(entry.request, *held);
    if (chosen.size() < entry.request.nodes) {
      job.reason = entry.request.pinned_nodes.empty() ? "Resources" : "ReqNodeNotAvail";
      return false;
    }
    job.nodes = std::move(chosen);
    job.state = JobState::running;
    job.reason.clear();
    job.start_time = now;
    tell(entry, entry.start_told);
    return true;
  }

  std::vector<std::string> choose(const JobRequest& request, const Reservation& held) const {
    std::set<std::string> taken;
    for (const Job& job : script.foreign_jobs) {
      if (!is_terminal(job.state)) taken.insert(job.nodes.begin(), job.nodes.end());
    }
    for (const Entry& entry : entries) {
      if (entry.job.state == JobState::running || entry.job.state == JobState::completing) {
        taken.insert(entry.job.nodes.begin(), entry.job.nodes.end());
      }
    }
    std::vector<std::string> chosen;
    for (const std::string& name :
         request.pinned_nodes.empty() ? held.nodes : request.pinned_nodes) {
      const auto node = std::find_if(script.nodes.begin(), script.nodes.end(),
                                     [&](const Node& candidate) { return candidate.name == name; });
      if (chosen.size() < request.nodes && !taken.contains(name) && node != script.nodes.end() &&
          node->usable && node->gpus >= request.gpus_per_node) {
        chosen.push_back(name);
      }
    }
    return chosen;
  }

  struct Ending {
    Time at;
    JobState state;
    std::string reason;
    bool as_planned;
  };
  Ending ending(const Entry& entry) const {
    Ending end{*entry.job.start_time + entry.plan.duration, entry.plan.end, entry.plan.reason,
               true};
    const auto cut = [&](Time limit) {
      if (limit < end.at) end = {limit, JobState::timeout, "TimeLimit", false};
    };
    if (entry.request.time_limit > Duration::zero()) {
      cut(*entry.job.start_time + entry.request.time_limit);
    }
    if (const Reservation* held = reservation(entry.request.reservation)) cut(held->end);
    return end;
  }

  bool try_end(Entry& entry, Time now) {
    // As Slurm: the job runs on, the name of its reservation is gone.
    if (reservation(entry.request.reservation) == nullptr) entry.job.reservation.clear();
    Ending end = ending(entry);
    if (end.at > now) return false;
    finish(entry, end.state, end.at, std::move(end.reason));
    if (end.as_planned) {
      entry.job.exit_code = entry.plan.exit_code;
      entry.job.signal = entry.plan.signal;
    }
    tell(entry, entry.end_told);
    if (entry.plan.completing > Duration::zero()) {
      entry.job.ended_as = std::exchange(entry.job.state, JobState::completing);
    }
    return true;
  }

  static void finish(Entry& entry, JobState state, Time end, std::string reason) {
    entry.job.state = state;
    entry.job.end_time = end;
    entry.job.reason = std::move(reason);
  }

  void tell(const Entry& entry, bool& told) const {
    if (told) return;
    told = true;
    if (observer) observer(entry.request, entry.job);
  }
};

Fake::Fake(FakeScript script, Clock& clock, Observer observer)
    : state_(new State{std::move(script), clock, std::move(observer), {}, {}, 0, 1, {}}) {}
Fake::~Fake() = default;

Result<std::string> Fake::describe() {
  return "fake cluster";
}

Result<Time> Fake::now() {
  if (auto reached = state_->reach(); !reached) return tl::unexpected(reached.error());
  return state_->clock.now();
}

Result<std::vector<Reservation>> Fake::reservations() {
  if (auto reached = state_->reach(); !reached) return tl::unexpected(reached.error());
  return state_->script.reservations;
}

Result<std::vector<Node>> Fake::nodes() {
  if (auto reached = state_->reach(); !reached) return tl::unexpected(reached.error());
  return state_->script.nodes;
}

Result<std::vector<Job>> Fake::jobs() {
  if (auto reached = state_->reach(); !reached) return tl::unexpected(reached.error());
  std::vector<Job> jobs = state_->script.foreign_jobs;
  for (const Entry& entry : state_->entries) jobs.push_back(entry.job);
  return jobs;
}

Result<Submission> Fake::submit(const JobRequest& request) {
  State& state = *state_;
  if (auto reached = state.reach(); !reached) return tl::unexpected(reached.error());
  FakeJob plan;
  if (!state.script.jobs.empty()) {
    plan = state.script.jobs[std::min(state.submissions, state.script.jobs.size() - 1)];
  }
  if (plan.answer == Answer::lost_before) {
    ++state.submissions;
    return fail(Errc::unavailable, "the request was lost");
  }
  const Reservation* held = state.reservation(request.reservation);
  const Time now = state.clock.now();
  if (request.nonce.empty() || held == nullptr || held->end <= now) {
    return fail(Errc::refused,
                request.nonce.empty() ? "a nonce is needed" : "Requested reservation is invalid",
                request.reservation);
  }
  ++state.submissions;
  if (plan.answer == Answer::refused) return fail(Errc::refused, "the fake controller said no");
  Entry entry;
  entry.request = request;
  entry.plan = plan;
  entry.job.id = std::to_string(state.next_id++);
  entry.job.name = request.name + ":" + request.nonce;
  entry.job.nonce = request.nonce;
  entry.job.state = JobState::pending;
  entry.job.reservation = request.reservation;
  entry.job.partition = request.partition;
  entry.job.user = "operator";
  entry.job.submit_time = now;
  if (request.time_limit > Duration::zero()) entry.job.time_limit = request.time_limit;
  const std::string id = entry.job.id;
  state.entries.push_back(std::move(entry));
  state.advance(now);
  if (plan.answer == Answer::lost_after) return fail(Errc::unavailable, "the answer was lost");
  return Submission{id, {}};
}

Result<std::vector<Job>> Fake::find(const std::string& nonce) {
  if (auto reached = state_->reach(); !reached) return tl::unexpected(reached.error());
  std::vector<Job> found;
  for (const Entry& entry : state_->entries) {
    if (!nonce.empty() && entry.job.nonce == nonce) found.push_back(entry.job);
  }
  return found;
}

Result<std::vector<Job>> Fake::accounted(const std::string& name, const std::string& nonce,
                                         Time since) {
  State& state = *state_;
  if (!state.script.accounting_lag) return Scheduler::accounted(name, nonce, since);
  if (auto up = state.is_up(state.script.accounting_outages, "the fake accounting"); !up) {
    return tl::unexpected(up.error());
  }
  state.advance(state.clock.now());
  const Time heard_until = state.clock.now() - *state.script.accounting_lag;
  std::vector<Job> jobs = state.forgotten;
  for (const Entry& entry : state.entries) jobs.push_back(entry.job);
  std::vector<Job> known;
  for (Job& job : jobs) {
    if (nonce.empty() || job.name != name + ":" + nonce) continue;
    if (job.end_time && *job.end_time < since) continue;
    if (auto seen = State::as_accounted(std::move(job), heard_until)) known.push_back(*seen);
  }
  return known;
}

Result<void> Fake::would_accept(const JobRequest& request) {
  if (auto reached = state_->reach(); !reached) return reached;
  const auto& all = state_->script.reservations;
  const bool known = std::any_of(all.begin(), all.end(), [&](const Reservation& reservation) {
    return reservation.name == request.reservation;
  });
  if (known) return {};
  return fail(Errc::refused, "no reservation '" + request.reservation + "'");
}

Result<void> Fake::cancel(const std::string& job_id, const std::string& nonce) {
  if (auto reached = state_->reach(); !reached) return reached;
  for (Entry& entry : state_->entries) {
    const bool ended = is_terminal(entry.job.state) || entry.job.state == JobState::completing;
    if (entry.job.id != job_id || entry.job.nonce != nonce || ended) continue;
    State::finish(entry, JobState::cancelled, state_->clock.now(), "");
    state_->tell(entry, entry.end_told);
  }
  return {};
}

FakeScript& Fake::script() {
  return state_->script;
}
std::size_t Fake::submissions() const {
  return state_->submissions;
}

}  // namespace qualify::scheduler
