#include "qualify/run/progress.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

namespace qualify::run {

namespace {

constexpr std::array kFailureClasses = {"none", "workload", "infrastructure", "disagreement",
                                        "cancelled"};

FailureClass parse_failure_class(const std::string& text) {
  for (std::size_t i = 0; i < kFailureClasses.size(); ++i) {
    if (text == kFailureClasses[i]) return static_cast<FailureClass>(i);
  }
  throw std::invalid_argument("failure class '" + text + "'");
}

/// Throws on what no engine writes.
void take(QualificationState& state, const journal::Event& entry) {
  const Json payload = parse_json(entry.payload, "journal event").value();
  if (entry.kind == event::kPreflight) {
    state.preflight_faults.clear();
    for (const Json& fault : payload.at("faults")) {
      state.preflight_faults.push_back(fault.at("message").get<std::string>());
    }
    return;
  }
  if (entry.kind == event::kVerdict) {
    state.verdict = policy::parse_verdict(payload.at("verdict").get<std::string>()).value();
    state.reasons = payload.at("reasons").get<std::vector<std::string>>();
    if (!payload.at("level").is_null()) state.level = payload.at("level").get<std::string>();
    state.judgement = Digest::parse(payload.at("judgement").get<std::string>()).value();
    state.summary = payload.at("summary").get<std::string>();
    state.judged_at = entry.time;
    return;
  }
  if (entry.kind == event::kCertificate) {
    state.certificate = payload.at("id").get<std::string>();
    return;
  }
  if (entry.kind == event::kCancelled) {
    state.cancelled = payload.at("by").get<std::string>();
    if (const auto why = payload.at("why").get<std::string>(); !why.empty()) {
      state.cancelled += ": " + why;
    }
    return;
  }
  if (entry.kind == event::kWindowClosed) {
    state.window_closed = payload.at("why").get<std::string>();
    return;
  }
  RunState* run = nullptr;
  for (RunState& candidate : state.runs) {
    if (candidate.run.id == entry.run) run = &candidate;
  }
  if (run == nullptr) throw std::invalid_argument("run '" + entry.run + "'");
  if (entry.kind == event::kEvidence) {
    run->evidence = Digest::parse(payload.at("digest").get<std::string>()).value();
    return;
  }
  if (entry.kind == event::kIntent) {
    if (entry.attempt != static_cast<int>(run->attempts.size()) + 1) {
      throw std::invalid_argument("attempt " + std::to_string(entry.attempt));
    }
    Attempt attempt;
    attempt.number = entry.attempt;
    attempt.nonce = payload.at("nonce").get<std::string>();
    run->attempts.push_back(std::move(attempt));
    return;
  }
  Attempt& attempt = run->attempts.at(static_cast<std::size_t>(entry.attempt) - 1);
  if (entry.kind == event::kSubmitted) {
    attempt.job_id = payload.at("job_id").get<std::string>();
    attempt.submitted_at = entry.time;
  } else if (entry.kind == event::kRunning) {
    attempt.running_seen = true;
    attempt.nodes = payload.at("job").at("nodes").get<std::vector<std::string>>();
  } else if (entry.kind == event::kBreach) {
    attempt.breach = payload.at("why").get<std::string>();
    attempt.breach_class = parse_failure_class(
        payload.value("failure_class", std::string(name_of(FailureClass::infrastructure))));
  } else if (entry.kind == event::kEnded) {
    attempt.ended = true;
    attempt.ended_at = entry.time;
    attempt.complete = payload.at("complete").get<bool>();
    attempt.failure = payload.at("failure").get<std::string>();
    if (const Json& job = payload.at("job"); !job.is_null()) {
      attempt.job = canonical_bytes(job);
      if (auto nodes = job.at("nodes").get<std::vector<std::string>>(); !nodes.empty()) {
        attempt.nodes = std::move(nodes);
      }
    }
    if (payload.contains("cost")) {  // not in journals from before it was counted
      attempt.node_seconds = payload["cost"].at("node_seconds").get<double>();
      attempt.gpu_seconds = payload["cost"].at("gpu_seconds").get<double>();
    }
    attempt.failure_class = parse_failure_class(payload.at("failure_class").get<std::string>());
  }
  // Other kinds are detail for people (history); they change no state.
}

Unexpected damaged(const std::string& what) {
  return fail(Errc::integrity, "the journal does not make sense: " + what, {},
              "see what is wrong with: qualify doctor");
}

}  // namespace

const char* name_of(FailureClass failure) {
  return kFailureClasses[static_cast<std::size_t>(failure)];
}

Result<void> apply(QualificationState& state, const journal::Event& entry) {
  try {
    take(state, entry);
    return {};
  } catch (const std::exception& error) {
    return damaged(error.what());
  }
}

Result<policy::Gate> KnownCriteria::read(const Json& criteria) {
  std::string text = criteria.dump();
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = known_.find(text); found != known_.end()) return found->second;
  }
  auto gate = policy::gate_from_json(criteria);
  if (!gate) return gate;
  const std::scoped_lock lock(mutex_);
  known_.emplace(std::move(text), *gate);
  return gate;
}

Result<QualificationState> derive(const std::vector<journal::Event>& events, KnownCriteria* known) {
  if (events.empty() || events.front().kind != event::kPlanCreated) {
    return damaged("a qualification starts without a plan");
  }
  QualificationState state;
  state.name = events.front().qualification;
  state.started = events.front().time;
  try {
    const Json plan = parse_json(events.front().payload, "journal event").value();
    auto parsed = plan::plan_from_json(plan.at("plan"));
    if (!parsed) return tl::unexpected(parsed.error());
    state.plan = std::move(*parsed);
    state.plan_digest = plan::plan_digest(state.plan);
    auto gate = known != nullptr ? known->read(plan.at("criteria"))
                                 : policy::gate_from_json(plan.at("criteria"));
    if (!gate) return tl::unexpected(gate.error());
    state.gate = std::move(*gate);
    for (const plan::Run& run : state.plan.runs) state.runs.push_back({run, {}, std::nullopt});
    for (std::size_t i = 1; i < events.size(); ++i) take(state, events[i]);
  } catch (const std::exception& error) {
    return damaged(error.what());
  }
  return state;
}

bool wants_attempt(std::span<const RunState> runs) {
  const std::vector<Attempt>& lead = runs.front().attempts;
  if (lead.empty()) return true;
  // What ended the latest attempt for good in any of the runs ends it for all of them.
  const auto any_last = [&](FailureClass failure_class) {
    return std::any_of(runs.begin(), runs.end(), [&](const RunState& run) {
      return !run.attempts.back().complete && run.attempts.back().failure_class == failure_class;
    });
  };
  if (any_last(FailureClass::workload) || any_last(FailureClass::disagreement)) return false;
  if (!any_last(FailureClass::infrastructure)) return any_last(FailureClass::cancelled);
  int failures = 0;
  for (std::size_t i = 0; i < lead.size(); ++i) {
    failures += std::any_of(runs.begin(), runs.end(), [&](const RunState& run) {
      return run.attempts[i].failure_class == FailureClass::infrastructure;
    });
  }
  return failures < kMaxAttempts;
}

bool can_begin(const QualificationState& state, const RunState& run) {
  if (run.run.resumes.empty()) return true;
  return std::any_of(state.runs.begin(), state.runs.end(), [&](const RunState& other) {
    return other.run.id == run.run.resumes && !other.attempts.empty() &&
           other.attempts.back().complete;
  });
}

bool is_live(const QualificationState& state) {
  return std::any_of(state.runs.begin(), state.runs.end(), [](const RunState& run) {
    return !run.attempts.empty() && !run.attempts.back().ended;
  });
}

bool wants_submission(const QualificationState& state, std::size_t runs) {
  for (std::size_t first = 0, last = 0; first < std::min(runs, state.runs.size()); first = last) {
    last = plan::allocation_end(state.plan, first);
    const RunState& lead = state.runs[first];
    if (!lead.attempts.empty() && !lead.attempts.back().ended) continue;
    if (can_begin(state, lead) && wants_attempt({&lead, last - first})) return true;
  }
  return false;
}

std::vector<Cost> cost_by_arm(std::span<const QualificationState> states) {
  std::vector<Cost> costs;
  for (const QualificationState& state : states) {
    for (const RunState& run : state.runs) {
      auto cost = std::find_if(costs.begin(), costs.end(),
                               [&](const Cost& one) { return one.arm == run.run.arm; });
      if (cost == costs.end()) cost = costs.insert(costs.end(), Cost{run.run.arm});
      for (const Attempt& attempt : run.attempts) {
        ++cost->attempts;
        cost->node_seconds += attempt.node_seconds;
        cost->gpu_seconds += attempt.gpu_seconds;
      }
    }
  }
  return costs;
}

Result<QualificationState> state_of(const journal::Journal& journal, const std::string& name) {
  const auto events = journal.events(name);
  if (!events) return tl::unexpected(events.error());
  return derive(*events);
}

Result<std::optional<Duration>> expected_duration(journal::Database& database,
                                                  const plan::Plan& plan) {
  struct Seen {
    Duration sum{};
    Duration::rep runs = 0;
  };
  std::map<std::string, Seen> by_arm;
  const journal::Journal journal(database);
  const auto names = journal.qualifications(plan.gate);
  if (!names) return tl::unexpected(names.error());
  for (const std::string& name : *names) {
    const auto state = state_of(journal, name);
    if (!state) return tl::unexpected(state.error());
    if (state->plan.bundle != plan.bundle) continue;
    for (const RunState& run : state->runs) {
      for (const Attempt& attempt : run.attempts) {
        if (!attempt.complete || !attempt.submitted_at || !attempt.ended_at) continue;
        Seen& seen = by_arm[run.run.arm];
        seen.sum += std::max(Duration::zero(), *attempt.ended_at - *attempt.submitted_at);
        ++seen.runs;
      }
    }
  }
  Duration all{};
  for (const plan::Run& run : plan.runs) {
    const auto seen = by_arm.find(run.arm);
    if (seen == by_arm.end()) return std::optional<Duration>();
    all += seen->second.sum / seen->second.runs;
  }
  return std::optional<Duration>(all);
}

Result<std::vector<QualificationState>> open_qualifications(journal::Database& database,
                                                            const std::string& gate) {
  const journal::Journal journal(database);
  auto names = gate.empty() ? journal.latest_qualifications() : journal.qualifications(gate);
  if (!names) return tl::unexpected(names.error());
  if (!gate.empty() && names->size() > 1) names->erase(names->begin(), names->end() - 1);
  std::vector<QualificationState> all;
  for (const std::string& name : *names) {
    auto state = state_of(journal, name);
    if (!state) return tl::unexpected(state.error());
    if (state->open()) all.push_back(std::move(*state));
  }
  return all;
}

}  // namespace qualify::run
