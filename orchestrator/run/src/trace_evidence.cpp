#include <algorithm>
#include <optional>

#include "qualify/run/evidence.hpp"
#include "qualify/run/run_traces.hpp"

namespace qualify::run {

namespace {

/// What the machine is at fault for says nothing of a run.
bool about_machine(const Error& error) {
  return error.code == Errc::io || error.code == Errc::no_space;
}

/// Null where the run left no traces. What is wrong with them goes into `run.traces`.
Result<std::optional<RunTraces>> open_traces(const store::BlobStore& store,
                                             policy::RunEvidence& run,
                                             const std::filesystem::path& scratch) {
  auto opened = RunTraces::open(store, run.evidence, scratch);
  if (!opened && opened.error().code == Errc::not_found && opened.error().context == run.run) {
    return std::optional<RunTraces>();
  }
  if (!opened) return tl::unexpected(opened.error());
  policy::TraceEvidence& own = run.traces.emplace();
  const auto& set = opened->set();
  const auto manifest = set ? set->manifest() : tl::unexpected(set.error());
  auto faults = manifest ? set->faults() : tl::unexpected(manifest.error());
  if (!faults) {
    if (about_machine(faults.error())) return tl::unexpected(faults.error());
    own.unreadable = opened->without_folder(faults.error().describe());
    return std::optional<RunTraces>(std::move(*opened));
  }
  own.ranks = set->roots().ranks;
  own.iterations = set->roots().iterations;
  own.capture_level = manifest->capture_level;
  own.faults = std::move(*faults);
  opened->without_folder(own.faults);
  return std::optional<RunTraces>(std::move(*opened));
}

/// Number of the run that the others are held against; beyond the last where there is none.
std::size_t reference_of(const policy::Gate& gate, const std::vector<policy::RunEvidence>& runs) {
  if (gate.localization.capture) return 0;
  const auto found = std::find_if(runs.begin(), runs.end(), [&](const policy::RunEvidence& run) {
    return run.arm == gate.localization.traced_arm;
  });
  return static_cast<std::size_t>(found - runs.begin());
}

}  // namespace

Result<void> load_traces(const store::BlobStore& store, const policy::Gate& gate,
                         const std::filesystem::path& scratch,
                         std::vector<policy::RunEvidence>& runs, const KeepOn& keep_on) {
  const std::size_t reference = reference_of(gate, runs);
  std::optional<RunTraces> against;
  if (reference < runs.size()) {
    auto opened = open_traces(store, runs[reference], scratch);
    if (!opened) return tl::unexpected(opened.error());
    against = std::move(*opened);
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i == reference) continue;
    if (keep_on) {
      if (auto on = keep_on(); !on) return on;
    }
    const auto opened = open_traces(store, runs[i], scratch);
    if (!opened) return tl::unexpected(opened.error());
    if (!*opened || reference >= runs.size()) continue;
    policy::TraceEvidence& own = *runs[i].traces;
    own.against = runs[reference].run;
    if (!against) {
      own.not_compared = "run " + own.against + " left none";
      continue;
    }
    traces::LocalizeOptions options;
    options.full = true;  // a verdict must not rest on roots that lie
    auto found = localize(*against, **opened, options);
    if (found) {
      own.found = std::move(*found);
    } else if (about_machine(found.error())) {
      return tl::unexpected(found.error());
    } else {
      own.not_compared = found.error().describe();
    }
  }
  return {};
}

}  // namespace qualify::run
