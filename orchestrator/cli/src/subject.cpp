#include "subject.hpp"

#include <algorithm>

#include "qualify/evidence/metrics.hpp"
#include "qualify/journal/journal.hpp"
#include "qualify/ledger/ledger.hpp"
#include "qualify/run/baselines.hpp"
#include "qualify/run/evidence.hpp"
#include "qualify/run/progress.hpp"
#include "qualify/store/bundle.hpp"

namespace qualify::cli {

namespace {

namespace fs = std::filesystem;

Result<Subject> from_evidence(const Session& session, const run::State& state,
                              const Digest& manifest, const std::string& label) {
  auto run = run::load_evidence(state.evidence, manifest, scratch_folder(session));
  if (!run) return tl::unexpected(run.error());
  if (run->metrics.series.empty()) {
    return fail(Errc::invalid_input, "left no metrics" + (run->complete ? "" : ": " + run->failure),
                label);
  }
  Subject subject;
  subject.label = label;
  subject.metrics = std::move(run->metrics);
  subject.run = std::move(*run);
  return subject;
}

bool is_hex(const std::string& text) {
  return text.size() >= 6 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

Result<std::optional<run::QualificationState>> find_qualification(run::State& state,
                                                                  const std::string& name) {
  const journal::Journal journal(state.database);
  const auto names = journal.qualifications();
  if (!names) return tl::unexpected(names.error());
  std::string found;
  if (std::find(names->begin(), names->end(), name) != names->end()) {
    found = name;
  } else {
    const auto of_gate = journal.qualifications(name);
    if (!of_gate) return tl::unexpected(of_gate.error());
    if (of_gate->empty()) return std::optional<run::QualificationState>();
    found = of_gate->back();
  }
  auto derived = run::state_of(journal, found);
  if (!derived) return tl::unexpected(derived.error());
  return std::optional<run::QualificationState>(std::move(*derived));
}

const run::RunState& NamedRun::state() const {
  return *std::find_if(qualification.runs.begin(), qualification.runs.end(),
                       [&](const run::RunState& each) { return each.run.id == run; });
}

Result<std::optional<NamedRun>> find_run(run::State& state, const std::string& name) {
  const auto slash = name.rfind('/');
  auto found = find_qualification(state, name.substr(0, slash));
  if (!found) return tl::unexpected(found.error());
  if (!*found) return std::optional<NamedRun>();
  run::QualificationState& qualification = **found;
  const std::string id = slash == std::string::npos ? std::string() : name.substr(slash + 1);
  std::string known;
  for (const run::RunState& run : qualification.runs) {
    known += (known.empty() ? "" : ", ") + qualification.name + "/" + run.run.id;
    if (run.run.id != id) continue;
    if (!run.evidence) {
      return fail(Errc::not_found, "the run has left no evidence yet",
                  qualification.name + "/" + id, "see: qualify status " + qualification.plan.gate);
    }
    const Digest evidence = *run.evidence;
    return std::optional<NamedRun>({std::move(qualification), id, evidence});
  }
  return fail(Errc::not_found, qualification.name + " has no run '" + id + "'", {},
              "its runs: " + known);
}

fs::path scratch_folder(const Session& session) {
  const std::string set = session.variable("TMPDIR");
  return set.empty() ? fs::path("/tmp") : session.folder / set;
}

Result<Subject> read_subject(const Session& session, const std::string& name,
                             const std::string& format) {
  std::error_code ignored;
  const fs::path path = session.folder / name;
  if (fs::exists(fs::symlink_status(path, ignored))) {
    auto metrics = evidence::read_metrics(path, format, scratch_folder(session));
    if (!metrics) return tl::unexpected(metrics.error());
    return Subject{name, std::move(*metrics), std::nullopt};
  }
  const auto unknown = [&](const std::string& why) {
    return fail(Errc::not_found, "no such file or folder, and " + why, name,
                "a side is a path, a run such as repeat-1/a, or a certificate's id");
  };
  auto state = open_state_read_only(session);
  if (!state && state.error().code == Errc::not_found) {
    return unknown("there is no state to look for a run in");
  }
  if (!state) return tl::unexpected(state.error());
  if (name.starts_with("sha256:")) {
    const auto digest = Digest::parse(name);
    if (!digest) return tl::unexpected(digest.error());
    return from_evidence(session, *state, *digest, "evidence " + digest->brief());
  }
  if (is_hex(name)) {
    const auto record = ledger::Ledger(state->database).find(name);
    if (record) {
      const auto says = run::read_certificate(*record);
      if (!says) return tl::unexpected(says.error());
      if (says->runs.empty()) {
        return fail(Errc::invalid_input, "certificate " + record->id.substr(0, 12) + " of gate " +
                                             record->gate + " cites no runs: it rests on others");
      }
      return from_evidence(
          session, *state, says->runs.front().evidence,
          "run " + says->runs.front().run + " of certificate " + record->id.substr(0, 12));
    }
    if (record.error().code != Errc::not_found) return tl::unexpected(record.error());
  }
  const auto run = find_run(*state, name);
  if (!run) return tl::unexpected(run.error());
  if (!*run) return unknown("no run or certificate of this state is called so");
  return from_evidence(session, *state, (*run)->evidence,
                       "run " + (*run)->run + " of " + (*run)->qualification.name);
}

Result<Subject> read_baseline_subject(const Session& session, const std::string& baseline) {
  auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  const auto found = run::find_baseline(*state, baseline);
  if (!found) return tl::unexpected(found.error());
  return from_evidence(session, *state, found->evidence,
                       "run " + found->run + " of baseline " + found->name);
}

Result<std::optional<exactness::EnvironmentComparison>> compare_captured(const Session& session,
                                                                         const Subject& a,
                                                                         const Subject& b) {
  if (!a.run || !b.run || !a.run->environment || !b.run->environment) {
    return std::optional<exactness::EnvironmentComparison>();
  }
  const auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  const auto bundle_a = store::load(state->bundles, a.run->bundle);
  if (!bundle_a) return tl::unexpected(bundle_a.error());
  const auto bundle_b = store::load(state->bundles, b.run->bundle);
  if (!bundle_b) return tl::unexpected(bundle_b.error());
  const auto* arm_a = bundle_a->arm(a.run->arm);
  const auto* arm_b = bundle_b->arm(b.run->arm);
  std::vector<std::string> declared;
  if (arm_a != nullptr && arm_b != nullptr) {
    declared = run::declared_differences(*bundle_a, *arm_a, *bundle_b, *arm_b);
  }
  return std::optional<exactness::EnvironmentComparison>(
      exactness::compare_environments(*a.run->environment, *b.run->environment, declared));
}

}  // namespace qualify::cli
