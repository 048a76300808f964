#include <algorithm>
#include <nlohmann/json.hpp>

#include "evidence_view.hpp"
#include "qualify/base/files.hpp"
#include "qualify/base/text.hpp"
#include "qualify/run/evidence.hpp"
#include "qualify/run/node.hpp"

namespace qualify::run {

namespace {

constexpr const char* kManifestType = "application/vnd.qualify.evidence.v1+json";
constexpr const char* kFileType = "application/octet-stream";

/// Where the scheduler puts what the batch step prints.
constexpr const char* kBatchOutput = "job.out";
constexpr const char* kBatchErrors = "job.err";

struct Found {
  std::string path;  ///< relative to the attempt folder
  std::string kind;  ///< "metrics", "trace", "checkpoint", "log", "nodes", "other"
};

bool below(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder + "/");
}

std::string kind_of(const std::string& path, const store::Bundle& bundle) {
  if (path == kNodesFile) return "nodes";
  if (below(path, "logs") || below(path, kBatchOutput) || below(path, kBatchErrors)) return "log";
  // A bundle that declares nothing means all: its runs must not be for nothing.
  if (bundle.outputs.empty()) return "metrics";
  for (const spec::Output& output : bundle.outputs) {
    if (below(path, "output/" + output.path)) return output.kind;
  }
  return "other";
}

struct AllFound {
  std::vector<Found> files;     ///< sorted by path
  std::vector<Found> left_out;  ///< names that are not UTF-8, as text: no record can hold them
};

Result<AllFound> find_files(const fs::path& folder, const store::Bundle& bundle) {
  AllFound all;
  std::vector<Found>& files = all.files;
  for (const char* name : {kBatchOutput, kBatchErrors, kNodesFile}) {
    if (fs::exists(folder / name)) files.push_back({name, kind_of(name, bundle)});
  }
  for (const char* part : {"output", "logs"}) {
    if (!fs::exists(folder / part)) continue;
    std::error_code error;
    for (fs::recursive_directory_iterator it(folder / part, error), end; !error && it != end;
         it.increment(error)) {
      if (it->is_symlink() || !it->is_regular_file()) continue;
      std::string path = fs::relative(it->path(), folder).string();
      std::string kind = kind_of(path, bundle);
      if (is_utf8(path)) {
        files.push_back({std::move(path), std::move(kind)});
      } else {
        all.left_out.push_back({to_utf8(path), std::move(kind)});
      }
    }
    if (error) return fail_errno(error.value(), "cannot list", (folder / part).string());
  }
  std::sort(files.begin(), files.end(),
            [](const Found& a, const Found& b) { return a.path < b.path; });
  return all;
}

/// For what reads a file: every piece of it asks.
Sink asking(const KeepOn& keep_on) {
  if (!keep_on) return {};
  return [&keep_on](std::span<const std::byte>) { return keep_on(); };
}

const OutputFile* recorded(const std::optional<Sentinel>& sentinel, const std::string& path) {
  if (!sentinel) return nullptr;
  const auto found = std::find_if(sentinel->files.begin(), sentinel->files.end(),
                                  [&](const OutputFile& file) { return file.path == path; });
  return found == sentinel->files.end() ? nullptr : &*found;
}

}  // namespace

Result<Digest> collect(const EvidenceRequest& request, const store::Bundle& bundle,
                       store::BlobStore& store, const KeepOn& keep_on) {
  auto found = find_files(request.folder, bundle);
  if (!found) return tl::unexpected(found.error());
  auto read = read_sentinel(request.folder);
  std::optional<Sentinel> sentinel;
  Assessment outcome{request.attempt.complete, request.attempt.failure,
                     request.attempt.failure_class};
  const auto doubt = [&](FailureClass failure_class, std::string why) {
    if (!outcome.complete) return;  // the first reason stands
    outcome = {false, std::move(why), failure_class};
  };
  if (read) {
    sentinel = std::move(*read);
  } else {
    doubt(FailureClass::disagreement, read.error().describe());
  }

  for (const Found& file : found->left_out) {
    if (file.kind == "log" || file.kind == "other") continue;
    doubt(FailureClass::workload, "the name of " + file.path + " (" + file.kind +
                                      ") is not UTF-8: it cannot be recorded as evidence");
  }
  Json files = Json::array();
  for (const Found& file : found->files) {
    store::Descriptor stored;
    if (file.kind == "checkpoint") {
      // Too large to keep twice: its digests are the evidence.
      const auto hashed = hash_file(request.folder / file.path, asking(keep_on));
      if (!hashed) return tl::unexpected(hashed.error());
      stored = {kFileType, hashed->digest, hashed->size, {}};
    } else {
      const auto added = store.add_file(request.folder / file.path, kFileType, asking(keep_on));
      if (!added) return tl::unexpected(added.error());
      stored = *added;
    }
    const OutputFile* own = recorded(sentinel, file.path);
    if (sentinel && own == nullptr && file.kind != "log") {
      doubt(FailureClass::disagreement, file.path + " was written after the job had ended");
    }
    if (own != nullptr && own->digest != stored.digest) {
      doubt(FailureClass::disagreement, file.path + " changed after the job had hashed it");
    }
    files.push_back({{"path", file.path},
                     {"kind", file.kind},
                     {"size", stored.size},
                     {"digest", stored.digest.str()},
                     {"stored", file.kind != "checkpoint"}});
  }
  if (sentinel) {
    for (const OutputFile& file : sentinel->files) {
      const bool there =
          std::any_of(found->files.begin(), found->files.end(),
                      [&](const Found& candidate) { return candidate.path == file.path; });
      if (!there)
        doubt(FailureClass::disagreement, file.path + " vanished after the job had ended");
    }
  }
  for (const spec::Output& output : bundle.outputs) {
    const bool there =
        std::any_of(found->files.begin(), found->files.end(),
                    [&](const Found& file) { return below(file.path, "output/" + output.path); });
    if (output.required && !there) {
      doubt(FailureClass::workload, "the workload left no " + output.kind + " at " + output.path);
    }
  }

  Json outputs = Json::array();
  for (const spec::Output& output : bundle.outputs) {
    outputs.push_back({{"kind", output.kind}, {"path", output.path}, {"format", output.format}});
  }
  Json manifest = {
      {"schema_version", 1},
      {"qualification", request.qualification},
      {"gate", request.gate},
      {"run", request.run.id},
      {"arm", request.run.arm},
      {"pair", request.run.pair},
      {"attempt", request.attempt.number},
      {"nonce", request.attempt.nonce},
      {"bundle", bundle.digest.str()},
      {"plan", request.plan.str()},
      {"job", request.attempt.job.empty() ? Json(nullptr)
                                          : parse_json(request.attempt.job, "job").value()},
      {"allocation", request.attempt.job_id},
      {"folder", request.folder.string()},
      {"sentinel", sentinel ? to_json(*sentinel) : Json(nullptr)},
      {"complete", outcome.complete},
      {"failure", outcome.failure},
      {"failure_class", name_of(outcome.failure_class)},
      {"arm_settings", arm_settings(bundle, request.run.arm)},
      {"outputs", std::move(outputs)},
      {"files", std::move(files)}};
  if (!found->left_out.empty()) {
    Json names = Json::array();
    for (const Found& file : found->left_out) names.push_back(file.path);
    manifest["left_out"] = std::move(names);
  }
  const auto bytes = canonical_json(manifest);
  if (!bytes) return tl::unexpected(bytes.error());
  const auto added = store.add_bytes(*bytes, kManifestType);
  if (!added) return tl::unexpected(added.error());
  return added->digest;
}

Result<void> verify_evidence(const store::BlobStore& store, const Digest& manifest) {
  const auto json = read_evidence_manifest(store, manifest);
  if (!json) return tl::unexpected(json.error());
  try {
    for (const Json& file : json->at("files")) {
      if (!file.at("stored").get<bool>()) continue;
      const auto digest = Digest::parse(file.at("digest").get<std::string>()).value();
      if (auto whole = store.verify(digest); !whole) {
        Error error = whole.error();
        error.message += " (" + file.at("path").get<std::string>() + " of run " +
                         json->at("run").get<std::string>() + ")";
        return Unexpected(std::move(error));
      }
    }
    return {};
  } catch (const std::exception& error) {
    return fail(Errc::integrity, std::string("evidence manifest is damaged: ") + error.what(),
                manifest.str());
  }
}

namespace {

Result<std::optional<exactness::Environment>> read_environment(const store::BlobStore& store,
                                                               const Json& manifest) {
  for (const Json& file : manifest.at("files")) {
    if (file.at("kind").get<std::string>() != "nodes") continue;
    const auto digest = Digest::parse(file.at("digest").get<std::string>()).value();
    const auto lines = store.read(digest, kLargestRecord);
    if (!lines) return tl::unexpected(lines.error());
    return captured_environment(manifest, *lines);
  }
  return captured_environment(manifest);
}

}  // namespace

namespace {

/// The reader that the bundle declares for a file of the attempt, empty where it declares none.
std::string declared_format(const Json& manifest, const std::string& path) {
  for (const Json& output : manifest.at("outputs")) {
    if (below(path, "output/" + output.at("path").get<std::string>())) {
      return output.at("format").get<std::string>();
    }
  }
  return {};
}

}  // namespace

Result<policy::RunEvidence> load_evidence(const store::BlobStore& store, const Digest& manifest,
                                          const std::filesystem::path& scratch,
                                          const KeepOn& keep_on) {
  if (keep_on) {
    if (auto on = keep_on(); !on) return tl::unexpected(on.error());
  }
  const auto json = read_evidence_manifest(store, manifest);
  if (!json) return tl::unexpected(json.error());
  auto view = EvidenceView::create(store, scratch);
  if (!view) return tl::unexpected(view.error());

  try {
    policy::RunEvidence run;
    run.run = json->at("run").get<std::string>();
    run.arm = json->at("arm").get<std::string>();
    run.pair = json->at("pair").get<std::uint32_t>();
    run.allocation = json->at("allocation").get<std::string>();
    run.complete = json->at("complete").get<bool>();
    run.failure = json->at("failure").get<std::string>();
    run.failure_class = json->at("failure_class").get<std::string>();
    run.bundle = Digest::parse(json->at("bundle").get<std::string>()).value();
    run.evidence = manifest;
    if (const Json job = json->value("job", Json()); job.is_object()) {
      run.nodes = job.value("nodes", std::vector<std::string>());
    }
    if (const Json sentinel = json->value("sentinel", Json()); sentinel.is_object()) {
      run.seen_nodes = sentinel.value("nodes", std::vector<std::string>());
    }
    run.arm_settings = json->value("arm_settings", std::vector<std::string>());
    auto captured = read_environment(store, *json);
    if (!captured) return tl::unexpected(captured.error());
    run.environment = std::move(*captured);
    bool any = false;
    for (const Json& file : json->at("files")) {
      const auto kind = file.at("kind").get<std::string>();
      if (kind != "metrics" && kind != "log" && kind != "nodes") continue;
      const auto digest = Digest::parse(file.at("digest").get<std::string>()).value();
      if (kind == "nodes") {
        const auto records = store.read(digest, kLargestRecord);
        if (!records) return tl::unexpected(records.error());
        run.gpus = gpu_readings(*records);
        continue;
      }
      if (auto added = view->add(file.at("path").get<std::string>(), digest, asking(keep_on));
          !added) {
        return tl::unexpected(added.error());
      }
      any = true;
    }
    if (!any) return run;
    auto metrics = evidence::read_metrics_as(
        view->folder(),
        [&](const fs::path& file) {
          return declared_format(*json, file.lexically_relative(view->folder()).generic_string());
        },
        scratch);
    if (metrics) {
      run.metrics = std::move(*metrics);
      for (std::string& source : run.metrics.sources) source = view->without_folder(source);
      for (evidence::ReadFault& fault : run.metrics.faults) {
        fault.where = view->without_folder(fault.where);
        fault.message = view->without_folder(fault.message);
      }
    } else if (metrics.error().code == Errc::invalid_input) {
      if (run.complete) {
        run.complete = false;
        run.failure = "no metrics could be read: " + metrics.error().message;
        run.failure_class = name_of(FailureClass::workload);
      }
    } else {
      return tl::unexpected(metrics.error());
    }
    return run;
  } catch (const std::exception& error) {
    return fail(Errc::integrity, std::string("evidence manifest is damaged: ") + error.what(),
                manifest.str());
  }
}

}  // namespace qualify::run
