#include "execute.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "allocation.hpp"
#include "patience.hpp"
#include "qualify/run/evidence.hpp"

namespace qualify::run {

KeepOn unless_stopped(const Context& context, const std::string& name) {
  return [&context, name]() -> Result<void> {
    if (context.ports.stop() == Stop::none) return {};
    return fail(Errc::interrupted, "stopped while evidence was read; no job is live", name, kGoOn);
  };
}

std::filesystem::path attempt_folder(const Context& context, const std::string& name,
                                     const std::string& run, int attempt) {
  return std::filesystem::absolute(context.state.paths.runs()) / name / run /
         ("attempt-" + std::to_string(attempt));
}

Result<QualificationState> execute(const Context& context, const std::string& name,
                                   std::size_t runs) {
  auto state = context.recorder.state_of(name);
  if (!state) return state;
  runs = std::min(runs, state->runs.size());
  for (std::size_t first = 0, last = 0; first < runs; first = last) {
    last = plan::allocation_end(state->plan, first);
    if (!can_begin(*state, state->runs[first])) continue;
    if (auto done = Allocation(context, *state, first, last, runs).drive(); !done) {
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
  const auto now = patiently(context.ports, [&] { return context.ports.scheduler.now(); });
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

Result<QualificationState> collect_all(const Context& context, const QualificationState& executed,
                                       std::size_t runs) {
  for (const RunState& run : std::span(executed.runs).first(std::min(runs, executed.runs.size()))) {
    if (run.evidence || run.attempts.empty() || !run.attempts.back().ended) continue;
    const Attempt& last = run.attempts.back();
    const EvidenceRequest request{executed.name,
                                  executed.plan.gate,
                                  run.run,
                                  last,
                                  attempt_folder(context, executed.name, run.run.id, last.number),
                                  executed.plan_digest};
    const auto manifest = collect(request, context.bundle, context.state.evidence,
                                  unless_stopped(context, executed.name));
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
