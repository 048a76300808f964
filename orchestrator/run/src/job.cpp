#include "qualify/run/job.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "qualify/base/text.hpp"
#include "qualify/run/launch.hpp"
#include "qualify/run/node.hpp"
#include "qualify/run/watch.hpp"
#include "qualify/scheduler/hostlist.hpp"
#include "steps.hpp"

namespace qualify::run {

namespace {

using Environment = std::map<std::string, std::string>;

std::string variable(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

std::string joined(const std::vector<std::string>& faults) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(faults.size(), kShown); ++i) {
    text += (text.empty() ? "" : "; ") + faults[i];
  }
  if (faults.size() > kShown) text += "; and " + std::to_string(faults.size() - kShown) + " more";
  return text;
}

/// Paths of all regular files below output/ and logs/, relative to the attempt folder, sorted;
/// links are not followed, and a name that is not UTF-8 has no place in a record (collect.cpp).
Result<std::vector<std::string>> list_outputs(const fs::path& folder) {
  std::vector<std::string> paths;
  for (const char* part : {"output", "logs"}) {
    std::error_code error;
    for (fs::recursive_directory_iterator it(folder / part, error), end; !error && it != end;
         it.increment(error)) {
      if (!it->is_regular_file() || it->is_symlink()) continue;
      std::string path = it->path().lexically_relative(folder).string();
      if (is_utf8(path)) paths.push_back(std::move(path));
    }
    if (error) return fail_errno(error.value(), "cannot list", (folder / part).string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// One attempt from layout to result, stage by stage; the first that fails is the last but for the
/// recording of what there is.
class AttemptJob {
 public:
  AttemptJob(const JobPlan& plan, const JobContext& context, Clock& clock)
      : plan_(plan), context_(context), clock_(clock) {}

  /// Errors: io (the sentinel could not be written).
  Result<Sentinel> run() {
    sentinel_.nonce = plan_.nonce;
    sentinel_.host = context_.host;
    sentinel_.nodes = {context_.host};
    const std::string restarts = variable(context_.environment, "SLURM_RESTART_COUNT");
    std::from_chars(restarts.data(), restarts.data() + restarts.size(), sentinel_.restart_count);
    sentinel_.started = clock_.now();

    Workload workload;
    const bool started = stage("prepare", [&] { return prepare(workload); }) &&
                         stage("verify", [&] { return verify(); }) &&
                         stage("train", [&] { return train(std::move(workload)); });
    // What a workload left that failed is evidence too.
    if (started || sentinel_.stage == "train") stage("collect", [&] { return collect(); });
    if (auto hashed = hash_the_rest(); !hashed) return tl::unexpected(hashed.error());
    std::sort(sentinel_.files.begin(), sentinel_.files.end(),
              [](const OutputFile& a, const OutputFile& b) { return a.path < b.path; });
    sentinel_.ended = clock_.now();
    if (auto written = write_file_atomic(plan_.folder / kSentinelFile, to_json(sentinel_).dump(1));
        !written) {
      return tl::unexpected(written.error());
    }
    return sentinel_;
  }

 private:
  /// Runs one stage; a failure is noted unless an earlier one was. True: go on.
  template <class Stage>
  bool stage(const char* name, Stage&& run) {
    const Result<void> done = run();
    if (done) return true;
    if (!sentinel_.failure.empty()) {
      // Tasks that fail because a node died look like a failed workload: it is the node's doing.
      if (silent_) {
        sentinel_.stage = name;
        sentinel_.failure += "; " + done.error().describe();
      }
      return false;
    }
    sentinel_.stage = name;
    sentinel_.failure = done.error().describe();
    if (std::string_view(name) != "train") {
      if (sentinel_.exit_code == 0) sentinel_.exit_code = -1;
      if (std::string_view(name) != "collect") {
        sentinel_.failure = "the workload was not started: " + sentinel_.failure;
      }
    }
    return false;
  }

  Result<void> prepare(Workload& workload) {
    const auto store = store::BlobStore::open_read_only(plan_.store);
    if (!store) return tl::unexpected(store.error());
    const auto bundle = store::load(*store, plan_.bundle);
    if (!bundle) return tl::unexpected(bundle.error());
    const JobLayout layout{plan_.folder / "bundle", plan_.folder / "output"};
    if (auto laid = store::materialize(*store, *bundle, layout.bundle); !laid) return laid;
    sentinel_.bundle = plan_.bundle;
    const spec::Arm* arm = bundle->arm(plan_.arm);
    if (arm == nullptr) {
      return fail(Errc::invalid_input, "the bundle has no arm '" + plan_.arm + "'");
    }
    auto argv = workload_argv(*bundle, *arm, plan_, layout);
    if (!argv) return tl::unexpected(argv.error());
    auto environment = workload_environment(*bundle, *arm, plan_, layout, context_.environment);
    if (!environment) return tl::unexpected(environment.error());
    if (auto known = find_nodes(); !known) return known;
    add_rendezvous(*environment, plan_, nodes_.front());
    auto container = container_options(*bundle, *arm, plan_, layout);
    if (!container) return tl::unexpected(container.error());
    sentinel_.argv = *argv;
    sentinel_.environment = printable(recorded_environment(*bundle, *environment));
    for (const fs::path& made :
         {layout.output, plan_.folder / "logs", plan_.folder / kNodesFolder}) {
      if (auto done = make_folders(made); !done) return done;
    }
    workload = {std::move(*argv), std::move(*environment), std::move(*container),
                bundle->passed_environment};
    return {};
  }

  /// Where this job is, by the scheduler's word here; the nodes check it one by one.
  Result<void> find_nodes() {
    if (plan_.scheduler != "slurm") {
      nodes_ = {context_.host};
      return {};
    }
    auto nodes = scheduler::expand_hostlist(variable(context_.environment, "SLURM_JOB_NODELIST"));
    if (!nodes) return tl::unexpected(nodes.error());
    if (nodes->empty()) return fail(Errc::invalid_input, "SLURM_JOB_NODELIST is not set");
    nodes_ = std::move(*nodes);
    return {};
  }

  Result<void> verify() {
    const auto ran = run_on_nodes(NodeStep::verify, plan_, context_, clock_);
    if (!ran) return tl::unexpected(ran.error());
    const NodeRecords records = join_nodes(plan_, nodes_, false);
    sentinel_.nodes = records.names;
    return outcome_of(*ran, records);
  }

  Result<void> train(Workload workload) {
    const auto end = run_workload(plan_, context_, std::move(workload));
    if (!end) {
      sentinel_.exit_code = -1;
      return tl::unexpected(end.error());
    }
    sentinel_.exit_code = end->status.code;
    sentinel_.signal = end->status.signal;
    sentinel_.failed_task = end->failed_task;
    if (!end->status.success()) return fail(Errc::invalid_input, end->describe());
    return {};
  }

  Result<void> collect() {
    const auto paths = list_outputs(plan_.folder);
    if (!paths) return tl::unexpected(paths.error());
    if (auto written = write_file_atomic(plan_.folder / kCollectList, Json(*paths).dump());
        !written) {
      return written;
    }
    const auto ran = run_on_nodes(NodeStep::collect, plan_, context_, clock_);
    if (!ran) return tl::unexpected(ran.error());
    const NodeRecords records = join_nodes(plan_, nodes_, true);
    silent_ = records.silent;
    for (const Json& file : records.files) {
      const auto digest = Digest::parse(file.at("digest").get<std::string>());
      if (!digest) return tl::unexpected(digest.error());
      sentinel_.files.push_back(
          {file.at("path").get<std::string>(), file.at("size").get<std::uint64_t>(), *digest});
    }
    std::string lines;
    for (const Json& line : records.lines) lines += line.dump() + "\n";
    if (auto written = write_file_atomic(plan_.folder / kNodesFile, lines, 0444); !written) {
      return written;
    }
    return outcome_of(*ran, records);
  }

  /// A step that ended badly without any node's saying why.
  static Result<void> outcome_of(const std::string& step, const NodeRecords& records) {
    if (!records.faults.empty()) return fail(Errc::integrity, joined(records.faults));
    if (!step.empty()) return fail(Errc::io, step);
    return {};
  }

  /// What no node hashed: the logs of the collecting itself, the joined records, and after a
  /// failure everything that there is.
  Result<void> hash_the_rest() {
    auto paths = list_outputs(plan_.folder);
    if (!paths && paths.error().code != Errc::not_found) return tl::unexpected(paths.error());
    std::vector<std::string> all = paths ? std::move(*paths) : std::vector<std::string>();
    if (fs::exists(plan_.folder / kNodesFile)) all.emplace_back(kNodesFile);
    std::vector<std::string> known;
    for (const OutputFile& file : sentinel_.files) known.push_back(file.path);
    std::sort(known.begin(), known.end());
    for (const std::string& path : all) {
      if (std::binary_search(known.begin(), known.end(), path)) continue;
      const auto hashed = hash_file(plan_.folder / path);
      if (!hashed) return tl::unexpected(hashed.error());
      sentinel_.files.push_back({path, hashed->size, hashed->digest});
    }
    return {};
  }

  const JobPlan& plan_;
  const JobContext& context_;
  Clock& clock_;
  Sentinel sentinel_;
  std::vector<std::string> nodes_;
  bool silent_ = false;  ///< some node did not collect
};

}  // namespace

namespace {

Result<Sentinel> run_attempt(const JobPlan& plan, const JobContext& context, Clock& clock) {
  // Whoever comes second (a job started again elsewhere, one that was given up on) does nothing.
  const std::string job_id = variable(context.environment, "SLURM_JOB_ID");
  if (auto claimed = claim_attempt(
          plan.folder, "job " + (job_id.empty() ? plan.nonce : job_id) + " on " + context.host);
      !claimed) {
    return tl::unexpected(claimed.error());
  }
  return AttemptJob(plan, context, clock).run();
}

}  // namespace

Result<Sentinel> run_job(const std::filesystem::path& plan_file, const JobContext& context,
                         Clock& clock) {
  const auto first = read_job_plan(plan_file);
  if (!first) return tl::unexpected(first.error());
  auto sentinel = run_attempt(*first, context, clock);
  for (const std::filesystem::path& file : first->further) {
    if (!sentinel || !sentinel->failure.empty()) break;
    const auto next = read_job_plan(file);
    if (!next) return tl::unexpected(next.error());
    sentinel = run_attempt(*next, context, clock);
  }
  return sentinel;
}

}  // namespace qualify::run
