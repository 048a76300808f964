#pragma once

#include <optional>
#include <string>

#include "qualify/exactness/environment.hpp"
#include "qualify/policy/judge.hpp"
#include "qualify/run/progress.hpp"
#include "qualify/run/state.hpp"
#include "session.hpp"

namespace qualify::cli {

/// One side of a comparison, whatever it was named by.
struct Subject {
  std::string label;  ///< for people: the path as given, or "run a of repeat-1"
  evidence::RunMetrics metrics;
  /// Of runs of this state, null for plain files.
  std::optional<policy::RunEvidence> run;  ///< its `metrics` are those above, moved
};

/// A run of the state, and what it was part of.
struct NamedRun {
  run::QualificationState qualification;
  std::string run;
  Digest evidence;
  [[nodiscard]] const run::RunState& state() const;
};

/// "QUALIFICATION/RUN" ("repeat-1/a"), or "GATE/RUN" for the gate's latest. Null: the state has no
/// such qualification. Errors: not_found (it has no such run, or the run no evidence), integrity,
/// io.
[[nodiscard]] Result<std::optional<NamedRun>> find_run(run::State& state, const std::string& name);

/// TMPDIR, else /tmp: for what reading needs for a while. Never in the state, which a reader may
/// not write to.
[[nodiscard]] std::filesystem::path scratch_folder(const Session& session);

/// "repeat-1" by name, or "repeat" as a gate: its latest. Nothing when there is none.
/// Errors: integrity, io, busy.
[[nodiscard]] Result<std::optional<run::QualificationState>> find_qualification(
    run::State& state, const std::string& name);

/// In this order: a folder or file; "QUALIFICATION/RUN" ("repeat-1/a"), or "GATE/RUN" for the
/// gate's latest; a certificate's id or its beginning (its first run stands for it); an evidence
/// manifest
/// ("sha256:…"). What is not a path is looked for in the state, which is opened for reading only.
/// `format` is for files. Errors: not_found (says what was looked for), those of reading.
[[nodiscard]] Result<Subject> read_subject(const Session& session, const std::string& name,
                                           const std::string& format);

/// The run that a baseline of the state names. Errors: not_found, integrity, io.
[[nodiscard]] Result<Subject> read_baseline_subject(const Session& session,
                                                    const std::string& baseline);

/// Null unless both are runs that captured their environments. Errors: those of the bundles' store.
[[nodiscard]] Result<std::optional<exactness::EnvironmentComparison>> compare_captured(
    const Session& session, const Subject& a, const Subject& b);

}  // namespace qualify::cli
