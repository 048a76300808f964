#include "explanation.hpp"

#include <nlohmann/json.hpp>

#include "qualify/store/bundle.hpp"

namespace qualify::cli {

namespace {

Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Result<Json> read_json(const store::BlobStore& store, const Digest& digest,
                       const std::string& what) {
  const auto bytes = store.read(digest, 1ULL << 30U);
  if (!bytes) return tl::unexpected(bytes.error());
  return parse_json(*bytes, what + " " + digest.brief());
}

/// The files that a run left, as its manifest names them.
Result<Json> files_of(const run::State& state, const Digest& evidence) {
  const auto manifest = read_json(state.evidence, evidence, "evidence");
  if (!manifest) return tl::unexpected(manifest.error());
  const auto files = manifest->find("files");
  if (files == manifest->end() || !files->is_array()) {
    return fail(Errc::integrity, "an evidence manifest without files", evidence.str());
  }
  return *files;
}

Json attempt_json(const run::Attempt& attempt) {
  Json job = nullptr;
  if (!attempt.job.empty()) {
    if (auto read = parse_json(attempt.job, "job")) job = std::move(*read);
  }
  return {{"number", attempt.number},
          {"job", or_null(attempt.job_id)},
          {"state", job.is_object() ? job.value("state", Json()) : Json(nullptr)},
          {"exit_code", job.is_object() ? job.value("exit_code", Json()) : Json(nullptr)},
          {"complete", attempt.complete},
          {"failure", or_null(attempt.failure)},
          {"failure_class", run::name_of(attempt.failure_class)},
          {"submitted", attempt.submitted_at ? Json(format_time(*attempt.submitted_at)) : Json()},
          {"ended", attempt.ended_at ? Json(format_time(*attempt.ended_at)) : Json()},
          {"nodes", attempt.nodes}};
}

Result<Json> runs_json(const run::State& state, const run::QualificationState& qualification) {
  Json runs = Json::array();
  for (const run::RunState& run : qualification.runs) {
    Json attempts = Json::array();
    for (const run::Attempt& attempt : run.attempts) attempts.push_back(attempt_json(attempt));
    Json files = Json::array();
    if (run.evidence) {
      auto read = files_of(state, *run.evidence);
      if (!read) return read;
      files = std::move(*read);
    }
    runs.push_back({{"run", run.run.id},
                    {"arm", run.run.arm},
                    {"evidence", run.evidence ? Json(run.evidence->str()) : Json(nullptr)},
                    {"files", std::move(files)},
                    {"attempts", std::move(attempts)}});
  }
  return runs;
}

Json bundle_json(const run::State& state, const Digest& digest) {
  Json json = {
      {"digest", digest.str()}, {"name", nullptr}, {"recipe", nullptr}, {"dirty", nullptr}};
  if (const auto bundle = store::load(state.bundles, digest)) {
    json["name"] = bundle->name;
    json["recipe"] = spec::name_of(bundle->recipe);
    json["dirty"] = bundle->dirty;
  }
  return json;
}

}  // namespace

Result<Json> explain(const run::State& state, const run::QualificationState& qualification) {
  const plan::Plan& plan = qualification.plan;
  Json comparisons = Json::array();
  Json limits = Json::array();
  Json overhead = nullptr;
  if (qualification.judgement) {
    const auto judgement = read_json(state.evidence, *qualification.judgement, "judgement");
    if (!judgement) return tl::unexpected(judgement.error());
    comparisons = judgement->value("pairs", Json::array());
    limits = judgement->value("limits", Json::array());
    overhead = judgement->value("overhead", Json());
  }
  auto runs = runs_json(state, qualification);
  if (!runs) return runs;
  Json baseline = nullptr;
  if (plan.baseline) {
    baseline = to_json(*plan.baseline);
    auto files = files_of(state, plan.baseline->evidence);
    if (!files) return files;
    baseline["files"] = std::move(*files);
  }
  const auto level = qualification.level ? exactness::parse_level(*qualification.level)
                                         : Result<exactness::Level>(fail(Errc::not_found, ""));
  return Json{
      {"gate", plan.gate},
      {"kind", policy::name_of(plan.kind)},
      {"qualification", qualification.name},
      {"started", format_time(qualification.started)},
      {"judged",
       qualification.judged_at ? Json(format_time(*qualification.judged_at)) : Json(nullptr)},
      {"verdict", qualification.verdict ? Json(policy::name_of(*qualification.verdict)) : Json()},
      {"cancelled", or_null(qualification.cancelled)},
      {"reasons", qualification.reasons},
      {"limits", std::move(limits)},
      {"level", qualification.level ? Json(*qualification.level) : Json(nullptr)},
      {"claim", level ? Json(exactness::claim_of(*level)) : Json(nullptr)},
      {"bundle", bundle_json(state, plan.bundle)},
      {"topology",
       {{"nodes", plan.topology.nodes}, {"gpus_per_node", plan.topology.gpus_per_node}}},
      {"scheduler", plan.scheduler},
      {"reservation", or_null(plan.reservation)},
      {"policy", plan.policy.str()},
      {"plan", qualification.plan_digest.str()},
      {"judgement", qualification.judgement ? Json(qualification.judgement->str()) : Json(nullptr)},
      {"baseline", std::move(baseline)},
      {"comparisons", std::move(comparisons)},
      {"overhead", std::move(overhead)},
      {"runs", std::move(*runs)},
      {"certificate", or_null(qualification.certificate)}};
}

}  // namespace qualify::cli
