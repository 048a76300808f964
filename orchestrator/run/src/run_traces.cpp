#include "qualify/run/run_traces.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "evidence_view.hpp"

namespace qualify::run {

namespace fs = std::filesystem;

struct RunTraces::State {
  explicit State(EvidenceView&& links) : view(std::move(links)) {}
  EvidenceView view;  ///< goes after the set, whose files it shows
  std::optional<Result<traces::TraceSet>> set;
};

RunTraces::RunTraces(std::unique_ptr<State> state) : state_(std::move(state)) {}
RunTraces::RunTraces(RunTraces&&) noexcept = default;
RunTraces& RunTraces::operator=(RunTraces&&) noexcept = default;
RunTraces::~RunTraces() = default;

Result<RunTraces> RunTraces::open(const store::BlobStore& store, const Digest& evidence,
                                  const fs::path& scratch) {
  const auto json = read_evidence_manifest(store, evidence);
  if (!json) return tl::unexpected(json.error());
  auto view = EvidenceView::create(store, scratch);
  if (!view) return tl::unexpected(view.error());
  fs::path folder = view->folder();
  bool any = false;
  try {
    for (const Json& output : json->at("outputs")) {
      if (output.at("kind") == "trace") folder /= "output/" + output.at("path").get<std::string>();
    }
    for (const Json& file : json->at("files")) {
      if (file.at("kind") != "trace") continue;
      const auto digest = Digest::parse(file.at("digest").get<std::string>()).value();
      if (auto added = view->add(file.at("path").get<std::string>(), digest); !added) {
        return tl::unexpected(added.error());
      }
      any = true;
    }
    if (!any) {
      return fail(Errc::not_found, "the run left no traces", json->at("run").get<std::string>(),
                  "its bundle must declare them: outputs: [{kind: trace, path: NAME}]");
    }
  } catch (const std::exception& error) {
    return fail(Errc::integrity, std::string("evidence manifest is damaged: ") + error.what(),
                evidence.str());
  }
  RunTraces opened(std::make_unique<State>(std::move(*view)));
  auto set = traces::TraceSet::open(folder, {});
  opened.state_->set =
      set ? std::move(set) : tl::unexpected(opened.without_folder(std::move(set.error())));
  return opened;
}

const Result<traces::TraceSet>& RunTraces::set() const {
  return *state_->set;
}

std::string RunTraces::without_folder(std::string text) const {
  return state_->view.without_folder(std::move(text));
}

Error RunTraces::without_folder(Error error) const {
  error.message = without_folder(std::move(error.message));
  error.context = without_folder(std::move(error.context));
  error.hint = without_folder(std::move(error.hint));
  for (Error& other : error.others) other = without_folder(std::move(other));
  return error;
}

void RunTraces::without_folder(traces::Faults& faults) const {
  for (traces::Fault& fault : faults) {
    fault.where = without_folder(std::move(fault.where));
    fault.message = without_folder(std::move(fault.message));
  }
}

Result<traces::Localization> localize(const RunTraces& a, const RunTraces& b,
                                      const traces::LocalizeOptions& options) {
  for (const RunTraces* side : {&a, &b}) {
    if (!side->set()) return tl::unexpected(side->set().error());
  }
  auto found = traces::localize(*a.set(), *b.set(), options);
  if (!found) return tl::unexpected(a.without_folder(b.without_folder(std::move(found.error()))));
  a.without_folder(found->faults_a);
  b.without_folder(found->faults_b);
  for (std::string& reason : found->reasons) {
    reason = a.without_folder(b.without_folder(std::move(reason)));
  }
  return found;
}

}  // namespace qualify::run
