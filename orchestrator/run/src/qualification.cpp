#include "qualify/run/qualification.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "execute.hpp"
#include "qualify/base/files.hpp"
#include "qualify/certify/statement.hpp"
#include "qualify/run/baselines.hpp"
#include "qualify/run/evidence.hpp"
#include "qualify/spec/environment_policy.hpp"

namespace qualify::run {

namespace {

constexpr const char* kJudgementType = "application/vnd.qualify.judgement.v1+json";

/// The unfinished qualification of this very plan, or a new one.
Result<QualificationState> begin(Recorder& recorder, const plan::Plan& plan,
                                 const policy::Gate& gate) {
  const Digest digest = plan::plan_digest(plan);
  auto names = recorder.journal().qualifications(plan.gate);
  if (!names) return tl::unexpected(names.error());
  if (!names->empty()) {
    auto latest = recorder.state_of(names->back());
    if (!latest) return latest;
    if (latest->open() && latest->plan_digest == digest) return latest;
    if (latest->open() && is_live(*latest)) {
      // A later qualification would hide it: nobody would follow its job, or could cancel it.
      return fail(Errc::refused,
                  "gate '" + plan.gate +
                      "' is under way by another plan (other criteria, another "
                      "bundle or grant), and its job may be live",
                  latest->name,
                  "bring it to its end with: qualify resume " + plan.gate +
                      ", or give it up with: qualify cancel " + plan.gate);
    }
  }
  return recorder.start(plan, gate);
}

/// The looks that are not over: one that went on to the next did not decide, and is not taken again
/// beside runs of the next.
std::vector<std::size_t> stages_left(std::vector<std::size_t> stages,
                                     const QualificationState& state) {
  const auto last_begun = std::find_if(state.runs.rbegin(), state.runs.rend(),
                                       [](const RunState& run) { return !run.attempts.empty(); });
  const auto begun = static_cast<std::size_t>(state.runs.rend() - last_begun);
  stages.erase(stages.begin(), std::lower_bound(stages.begin(), stages.end() - 1, begun));
  return stages;
}

/// One line for tables.
std::string summary_of(const policy::Judgement& judgement) {
  if (policy::changes_baseline(judgement.reasons)) return judgement.reasons.front();
  for (const policy::PairJudgement& pair : judgement.pairs) {
    if (judgement.verdict == policy::Verdict::fail && pair.comparison) {
      if (const auto* first = pair.comparison->first_divergence()) {
        return first->metric + " differs from iteration " + std::to_string(first->first->iteration);
      }
    }
  }
  return judgement.reasons.empty() ? std::string() : judgement.reasons.front();
}

Result<void> record_verdict(State& state, Recorder& recorder, const std::string& name,
                            const policy::Judgement& judgement) {
  const Json json = to_json(judgement);
  const auto stored = state.evidence.add_bytes(canonical_bytes(json), kJudgementType);
  if (!stored) return tl::unexpected(stored.error());
  return recorder.append(name, {}, 0, event::kVerdict,
                         {{"verdict", policy::name_of(judgement.verdict)},
                          {"reasons", judgement.reasons},
                          {"level", json.at("level")},
                          {"judgement", stored->digest.str()},
                          {"summary", summary_of(judgement)}});
}

certify::GateResult gate_result(const Request& request, const store::Bundle& bundle,
                                const QualificationState& done, const policy::Judgement& judgement,
                                const std::string& scheduler) {
  certify::GateResult result{
      request.gate, judgement, bundle.digest, bundle.name,   bundle.dirty,    done.plan_digest,
      {},           scheduler, done.name,     bundle.recipe, bundle.topology, done.plan.baseline};
  for (const RunState& run : done.runs) {
    if (!run.evidence || run.attempts.empty()) continue;
    const Attempt& last = run.attempts.back();
    result.runs.push_back(
        {run.run.id, run.run.arm, last.number, *run.evidence, last.job_id, last.nodes});
  }
  return result;
}

/// The verdict, the certificate that a pass earns, and a checkpoint of the log with it: in the
/// journal and the log together, or none, so that no crash leaves a finished gate without what it
/// earned.
Result<void> conclude(const Context& context, const QualificationState& done, Outcome& outcome) {
  std::optional<Json> statement;
  if (outcome.judgement.verdict == policy::Verdict::pass) {
    const auto description = context.ports.scheduler.describe();
    auto built = certify::gate_statement(
        gate_result(context.request, context.bundle, done, outcome.judgement,
                    description ? *description : context.ports.scheduler.kind()));
    if (built) {
      statement = std::move(*built);
    } else if (built.error().code == Errc::refused) {
      outcome.no_certificate = built.error().message;
    } else {
      return tl::unexpected(built.error());
    }
  }
  return context.state.database.transaction([&]() -> Result<void> {
    if (auto recorded =
            record_verdict(context.state, context.recorder, done.name, outcome.judgement);
        !recorded || !statement) {
      return recorded;
    }
    ledger::Ledger ledger(context.state.database);
    const auto record = ledger.append(context.ports.signer, ledger::RecordKind::certificate,
                                      context.request.gate.name, context.bundle.digest,
                                      context.ports.clock.now(), *statement);
    if (!record) return tl::unexpected(record.error());
    outcome.certificate = record->id;
    if (auto log = sign_checkpoint(context.state, context.ports.clock.now()); !log) {
      outcome.log_not_signed = log.error().describe();  // the certificate stands without it
    }
    return context.recorder.append(done.name, {}, 0, event::kCertificate, {{"id", record->id}});
  });
}

}  // namespace

Result<policy::Judgement> judge_recorded(const State& state, const QualificationState& done,
                                         const std::filesystem::path& scratch,
                                         const KeepOn& keep_on) {
  std::vector<policy::RunEvidence> runs;
  for (const RunState& run : done.runs) {
    if (!run.evidence) continue;
    auto evidence = load_evidence(state.evidence, *run.evidence, scratch, keep_on);
    if (!evidence) return tl::unexpected(evidence.error());
    runs.push_back(std::move(*evidence));
  }
  if (done.gate.kind == policy::GateKind::localization) {
    if (auto loaded = load_traces(state.evidence, done.gate, scratch, runs, keep_on); !loaded) {
      return tl::unexpected(loaded.error());
    }
  }
  if (!done.plan.baseline) return policy::judge(done.gate, runs);
  const auto baseline = load_evidence(state.evidence, done.plan.baseline->evidence, scratch);
  if (!baseline) return tl::unexpected(baseline.error());
  return policy::judge(done.gate, runs, &*baseline);
}

Result<Outcome> qualify_gate(State& state, const Request& request, const Ports& ports) {
  const auto lock =
      FileLock::acquire_or(state.paths.lock(), {Errc::busy,
                                                "another qualify is running a gate with this state",
                                                state.paths.folder.string(),
                                                "wait for it, or see: qualify status",
                                                {}});
  if (!lock) return tl::unexpected(lock.error());
  Recorder recorder(state.database, ports);

  const auto bundle = store::load(state.bundles, request.bundle);
  if (!bundle) return tl::unexpected(bundle.error());
  // Said before anything starts, and again in the job for what it inherits on its node.
  for (auto& faults :
       {spec::inherited_faults(bundle->required_environment, ports.environment, "this environment"),
        spec::missing_passed(bundle->passed_environment, ports.environment, "this environment")}) {
    if (!faults.empty()) return Unexpected(faults.front());
  }
  const auto plan = plan_gate(state, request.gate, *bundle, request.grant);
  if (!plan) return tl::unexpected(plan.error());

  // Beyond this point the criteria are logged and cannot follow the results.
  auto started = begin(recorder, *plan, request.gate);
  if (!started) return tl::unexpected(started.error());
  const std::string name = started->name;

  const Context context{state, request, ports, recorder, *bundle};
  Result<QualificationState> collected = std::move(started);
  std::optional<policy::Judgement> judgement;
  for (const std::size_t runs : stages_left(plan::stages(request.gate, *plan), *collected)) {
    if (judgement) {  // a further look: only where the window has room for all of it
      const auto allowed = window_allows(context, *collected, runs);
      if (!allowed) return tl::unexpected(allowed.error());
      if (!*allowed) break;
    }
    auto executed = execute(context, name, runs);
    if (!executed) return tl::unexpected(executed.error());
    collected = collect_all(context, *executed, runs);
    if (!collected) return tl::unexpected(collected.error());
    auto judged =
        judge_recorded(state, *collected, state.paths.temporary(), unless_stopped(context, name));
    if (!judged) return tl::unexpected(judged.error());
    judgement = std::move(*judged);
    if (!policy::wants_more(*judgement)) break;
  }

  // Beyond this point nothing executes.
  Outcome outcome{{}, std::move(*judgement), {}, {}, {}};
  if (auto concluded = conclude(context, *collected, outcome); !concluded) {
    return tl::unexpected(concluded.error());
  }
  auto final_state = recorder.state_of(name);
  if (!final_state) return tl::unexpected(final_state.error());
  outcome.state = std::move(*final_state);
  return outcome;
}

}  // namespace qualify::run
