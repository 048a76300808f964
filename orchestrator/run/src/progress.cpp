#include "qualify/run/progress.hpp"

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

/// Applies one event after the first; throws on what no engine writes.
void apply(QualificationState& state, const journal::Event& entry) {
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
  } else if (entry.kind == event::kEnded) {
    attempt.ended = true;
    attempt.ended_at = entry.time;
    attempt.complete = payload.at("complete").get<bool>();
    attempt.failure = payload.at("failure").get<std::string>();
    if (!payload.at("job").is_null()) attempt.job = canonical_bytes(payload.at("job"));
    attempt.failure_class = parse_failure_class(payload.at("failure_class").get<std::string>());
  }
  // Other kinds are detail for people (history); they change no state.
}

}  // namespace

const char* name_of(FailureClass failure) {
  return kFailureClasses[static_cast<std::size_t>(failure)];
}

Result<QualificationState> derive(const std::vector<journal::Event>& events) {
  const auto damaged = [](const std::string& what) {
    return fail(Errc::integrity, "the journal does not make sense: " + what, {},
                "see what is wrong with: qualify doctor");
  };
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
    auto gate = policy::gate_from_json(plan.at("criteria"));
    if (!gate) return tl::unexpected(gate.error());
    state.gate = std::move(*gate);
    for (const plan::Run& run : state.plan.runs) state.runs.push_back({run, {}, std::nullopt});
    for (std::size_t i = 1; i < events.size(); ++i) apply(state, events[i]);
  } catch (const std::exception& error) {
    return damaged(error.what());
  }
  return state;
}

Result<std::vector<QualificationState>> open_qualifications(journal::Database& database,
                                                            const std::string& gate) {
  const journal::Journal journal(database);
  const auto names = journal.qualifications(gate);
  if (!names) return tl::unexpected(names.error());
  std::map<std::string, std::size_t> latest;  // by gate: the place of its last name
  std::vector<QualificationState> all;
  for (std::size_t i = 0; i < names->size(); ++i) {
    latest[(*names)[i].substr(0, (*names)[i].rfind('-'))] = i;
  }
  for (std::size_t i = 0; i < names->size(); ++i) {
    if (latest.at((*names)[i].substr(0, (*names)[i].rfind('-'))) != i) continue;
    const auto events = journal.events((*names)[i]);
    if (!events) return tl::unexpected(events.error());
    auto state = derive(*events);
    if (!state) return tl::unexpected(state.error());
    if (state->open()) all.push_back(std::move(*state));
  }
  return all;
}

}  // namespace qualify::run
