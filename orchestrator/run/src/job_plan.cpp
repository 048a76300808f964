#include "qualify/run/job_plan.hpp"

#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"

namespace qualify::run {

Json to_json(const JobPlan& plan) {
  Json further = Json::array();
  for (const auto& file : plan.further) further.push_back(file.string());
  return {{"schema_version", 1},
          {"qualification", plan.qualification},
          {"gate", plan.gate},
          {"run", plan.run},
          {"attempt", plan.attempt},
          {"nonce", plan.nonce},
          {"bundle", plan.bundle.str()},
          {"store", plan.store.string()},
          {"folder", plan.folder.string()},
          {"arm", plan.arm},
          {"seed", std::to_string(plan.seed)},
          {"scheduler", plan.scheduler},
          {"reservation", plan.reservation},
          {"granted_nodes", plan.granted_nodes},
          {"nodes", plan.nodes},
          {"tasks_per_node", plan.tasks_per_node},
          {"gpus_per_node", plan.gpus_per_node},
          {"checkpoint", plan.checkpoint.empty() ? Json(nullptr) : Json(plan.checkpoint.string())},
          {"checkpoint_iteration", plan.checkpoint_iteration},
          {"capture_plan",
           plan.capture_plan.empty() ? Json(nullptr) : Json(plan.capture_plan.string())},
          {"further", std::move(further)}};
}

Result<JobPlan> read_job_plan(const std::filesystem::path& file) {
  auto text = read_file(file);
  if (!text) return tl::unexpected(text.error());
  auto json = parse_json(*text, file.string());
  if (!json) return tl::unexpected(json.error());
  try {
    JobPlan plan;
    const auto version = json->at("schema_version").get<int>();
    if (version != 1) {
      return fail(Errc::unsupported, "job plan of schema_version " + std::to_string(version),
                  file.string(), "the job must run the qualify that planned it");
    }
    plan.qualification = json->at("qualification").get<std::string>();
    plan.gate = json->at("gate").get<std::string>();
    plan.run = json->at("run").get<std::string>();
    plan.attempt = json->at("attempt").get<int>();
    plan.nonce = json->at("nonce").get<std::string>();
    plan.bundle = Digest::parse(json->at("bundle").get<std::string>()).value();
    plan.store = json->at("store").get<std::string>();
    plan.folder = json->at("folder").get<std::string>();
    plan.arm = json->at("arm").get<std::string>();
    plan.seed = std::stoll(json->at("seed").get<std::string>());
    plan.scheduler = json->at("scheduler").get<std::string>();
    plan.reservation = json->at("reservation").get<std::string>();
    plan.granted_nodes = json->at("granted_nodes").get<std::vector<std::string>>();
    plan.nodes = json->at("nodes").get<std::uint32_t>();
    plan.tasks_per_node = json->at("tasks_per_node").get<std::uint32_t>();
    plan.gpus_per_node = json->at("gpus_per_node").get<std::uint32_t>();
    // A live job of an earlier release has none of these.
    if (const Json at = json->value("checkpoint", Json()); !at.is_null()) {
      plan.checkpoint = at.get<std::string>();
    }
    plan.checkpoint_iteration = json->value("checkpoint_iteration", std::int64_t{0});
    if (const Json at = json->value("capture_plan", Json()); !at.is_null()) {
      plan.capture_plan = at.get<std::string>();
    }
    for (const Json& next : json->value("further", Json::array())) {
      plan.further.emplace_back(next.get<std::string>());
    }
    return plan;
  } catch (const std::exception& error) {
    return fail(Errc::invalid_input, std::string("not a job plan: ") + error.what(), file.string());
  }
}

}  // namespace qualify::run
