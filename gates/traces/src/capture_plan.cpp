#include "qualify/traces/capture_plan.hpp"

#include <nlohmann/json.hpp>

#include "qualify/traces/manifest.hpp"

namespace qualify::traces {

const char* name_of(Level level) {
  switch (level) {
    case Level::L0:
      return "L0";
    case Level::L1:
      return "L1";
    case Level::L2:
      return "L2";
  }
  return "";
}

Result<Level> parse_level(std::string_view text) {
  for (const Level level : {Level::L0, Level::L1, Level::L2}) {
    if (text == name_of(level)) return level;
  }
  return fail(Errc::invalid_input, "no capture level: \"" + std::string(text) + "\"", {},
              "L0, L1 or L2");
}

Json to_json(const CapturePlan& plan) {
  Json json = {{"schema_version", 1}, {"level", name_of(plan.level)}};
  if (!plan.ranks.empty()) json["ranks"] = ranks_text(plan.ranks);
  if (plan.first_iteration > 0) json["first_iteration"] = plan.first_iteration;
  if (plan.last_iteration < INT64_MAX) json["last_iteration"] = plan.last_iteration;
  if (!plan.phases.empty()) json["phases"] = plan.phases;
  if (!plan.sites.empty()) json["sites"] = plan.sites;
  return json;
}

Result<CapturePlan> parse_capture_plan(const Json& json, const std::string& context) {
  const auto bad = [&](const std::string& member, const char* what) {
    return fail(Errc::invalid_input, "\"" + member + "\" " + what, context,
                "docs/formats/capture-plan.md lists the members");
  };
  if (!json.is_object()) return fail(Errc::invalid_input, "a capture plan is an object", context);
  CapturePlan plan;
  for (const auto& [member, value] : json.items()) {
    if (member == "schema_version") {
      if (value != 1) return bad(member, "is not 1");
    } else if (member == "level") {
      if (!value.is_string()) return bad(member, "is no text");
      const auto level = parse_level(value.get<std::string>());
      if (!level) return bad(member, "is none of L0, L1, L2");
      plan.level = *level;
    } else if (member == "ranks") {
      if (!value.is_string()) return bad(member, "is no text such as 0-7");
      auto ranks = parse_ranks(value.get<std::string>());
      if (!ranks) return bad(member, "is no text such as 0-7");
      plan.ranks = std::move(*ranks);
    } else if (member == "first_iteration" || member == "last_iteration") {
      if (!value.is_number_integer() || value < 0) return bad(member, "is no iteration");
      (member[0] == 'f' ? plan.first_iteration : plan.last_iteration) = value.get<std::int64_t>();
    } else if (member == "phases" || member == "sites") {
      if (!value.is_array()) return bad(member, "is no list of texts");
      for (const Json& text : value) {
        if (!text.is_string()) return bad(member, "is no list of texts");
        (member == "phases" ? plan.phases : plan.sites).push_back(text.get<std::string>());
      }
    } else {
      return bad(member, "is no member of a capture plan");
    }
  }
  if (plan.last_iteration < plan.first_iteration)
    return bad("last_iteration", "comes before the first");
  return plan;
}

}  // namespace qualify::traces
