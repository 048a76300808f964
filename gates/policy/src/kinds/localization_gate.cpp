#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "../gate_reading.hpp"
#include "qualify/traces/manifest.hpp"

namespace qualify::policy {

namespace {

constexpr std::int64_t kMaxRanks = 1'000'000;
constexpr std::int64_t kMaxIteration = std::numeric_limits<std::int32_t>::max();

std::vector<std::string> causes() {
  std::vector<std::string> names;
  for (const traces::Cause cause : traces::kCauses) names.emplace_back(name_of(cause));
  return names;
}

Plant read_plant(const std::string& arm, spec::Fields& fields, std::uint32_t all) {
  Plant plant;
  plant.arm = arm;
  for (const char* key : {"iteration", "ranks"}) {
    if (!fields.has(key)) {
      fields.fault(fields.mark(), "what arm '" + arm + "' plants needs '" + key + "'");
    }
  }
  plant.iteration = fields.integer("iteration", 0, 0, kMaxIteration);
  plant.phase = fields.required_text("phase");
  plant.site = fields.required_text("site");
  const auto ranks = traces::parse_ranks(fields.text("ranks", "0"));
  if (!ranks || ranks->empty()) {
    fields.fault(fields.mark("ranks"), "no set of ranks", "such as 2, 0-7 or 0-3064:8");
  } else {
    plant.ranks = *ranks;
    std::sort(plant.ranks.begin(), plant.ranks.end());
    if (plant.ranks.back() >= std::int64_t{all}) {
      fields.fault(fields.mark("ranks"), "rank " + std::to_string(plant.ranks.back()) +
                                             " is none of the gate's " + std::to_string(all));
    }
  }
  const auto names = causes();
  plant.classification = names[fields.choice("classification", names, std::nullopt)];
  return plant;
}

Capture read_capture(spec::Fields& fields) {
  Capture capture;
  capture.of = fields.required_text("of");
  fields.section("arms", "arms of the capture", [&](spec::Fields& arms) {
    capture.arm_a = arms.required_text("a");
    capture.arm_b = arms.required_text("b");
  });
  fields.section("nodes", "nodes of the capture", [&](spec::Fields& nodes) {
    capture.nodes_a = nodes.texts("a");
    capture.nodes_b = nodes.texts("b");
  });
  const std::string text = fields.required_text("plan");
  const auto json = parse_json(text, "capture plan");
  auto plan = json ? traces::parse_capture_plan(*json, "capture plan")
                   : Result<traces::CapturePlan>(tl::unexpected(json.error()));
  if (plan) {
    capture.plan = std::move(*plan);
  } else {
    fields.fault(fields.mark("plan"), plan.error().message, plan.error().hint);
  }
  return capture;
}

}  // namespace

void read_localization(spec::Fields& fields, Gate& gate) {
  LocalizationCriteria& own = gate.localization;
  const std::string name = "gate '" + gate.name + "'";
  if (fields.has("capture")) {
    fields.section("capture", "capture of " + name,
                   [&](spec::Fields& capture) { own.capture = read_capture(capture); });
    return;
  }
  for (const auto& [key, what] :
       {std::pair("arms", "arms: {traced: NAME, untraced: NAME}"),
        std::pair("ranks", "how many ranks leave traces"),
        std::pair("overhead", "overhead: {below: 1.01}, the most that tracing may cost"),
        std::pair("planted",
                  "planted: {ARM: {iteration: N, phase: …, site: …, ranks: …, "
                  "classification: …}}")}) {
    if (!fields.has(key)) {
      fields.fault(fields.mark(), name + " needs '" + std::string(key) + "'", what);
    }
  }
  fields.section("arms", "arms of " + name, [&](spec::Fields& arms) {
    own.traced_arm = arms.required_text("traced");
    own.untraced_arm = arms.required_text("untraced");
    if (own.traced_arm == own.untraced_arm) {
      arms.fault(arms.mark("untraced"), "the traced and the untraced arm must differ",
                 "declare one arm for each in the bundle");
    }
  });
  own.ranks = static_cast<std::uint32_t>(fields.integer("ranks", 1, 1, kMaxRanks));
  fields.each_named(
      "planted", "planted divergence", [&](const std::string& arm, spec::Fields& plant) {
        own.planted.push_back(read_plant(arm, plant, own.ranks));
        if (arm == own.traced_arm || arm == own.untraced_arm) {
          plant.fault(plant.mark(),
                      "arm '" + arm + "' plants nothing: it is what is compared with");
        }
      });
  // The order of a file is not kept by what is recorded of it.
  std::sort(own.planted.begin(), own.planted.end(),
            [](const Plant& a, const Plant& b) { return a.arm < b.arm; });
  if (fields.has("planted") && own.planted.empty()) {
    fields.fault(fields.mark("planted"), name + " plants nothing, and finds nothing");
  }
  fields.section("overhead", "overhead of " + name, [&](spec::Fields& overhead) {
    own.overhead_below = read_decimal(overhead, "below", 1, 10,
                                      "a ratio of step times: 1.01 allows 1 % of it to be tracing");
    read_timing(overhead, gate);
  });
  read_equality(fields, gate);
}

void write_localization(const Gate& gate, Json& json) {
  const LocalizationCriteria& own = gate.localization;
  if (own.capture) {
    json["capture"] = {{"of", own.capture->of},
                       {"arms", {{"a", own.capture->arm_a}, {"b", own.capture->arm_b}}},
                       {"plan", canonical_bytes(to_json(own.capture->plan))}};
    // Left out where none are named, as captures were recorded before they could be.
    if (!own.capture->nodes_a.empty() || !own.capture->nodes_b.empty()) {
      json["capture"]["nodes"] = {{"a", own.capture->nodes_a}, {"b", own.capture->nodes_b}};
    }
    return;
  }
  json["arms"] = {{"traced", own.traced_arm}, {"untraced", own.untraced_arm}};
  json["ranks"] = own.ranks;
  Json planted = Json::object();
  for (const Plant& plant : own.planted) {
    planted[plant.arm] = {{"iteration", plant.iteration},
                          {"phase", plant.phase},
                          {"site", plant.site},
                          {"ranks", traces::ranks_text(plant.ranks)},
                          {"classification", plant.classification}};
  }
  json["planted"] = std::move(planted);
  Json overhead = {{"below", own.overhead_below}};
  write_timing(gate, overhead);
  json["overhead"] = std::move(overhead);
  write_equality(gate, json);
}

}  // namespace qualify::policy
