#include "standing_json.hpp"

#include <nlohmann/json.hpp>

namespace qualify::cli {

namespace {

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}
Json time_or_null(const std::optional<Time>& time) {
  return time ? Json(format_time(*time)) : Json(nullptr);
}

}  // namespace

Json to_json(const standing::Standing& standing) {
  Json parts = Json::array();
  for (const standing::Part& part : standing.parts) {
    parts.push_back({{"name", part.name},
                     {"gate", part.gate},
                     {"status", standing::name_of(part.status)},
                     {"why", part.why},
                     {"certificate", text_or_null(part.certificate)},
                     {"records", part.records}});
  }
  return {{"gate", standing.gate},
          {"kind", policy::name_of(standing.kind)},
          {"status", standing::name_of(standing.status)},
          {"reasons", standing.reasons},
          {"next", text_or_null(standing.next)},
          {"bundle", standing.bundle ? Json(standing.bundle->str()) : Json(nullptr)},
          {"bundle_name", text_or_null(standing.bundle_name)},
          {"policy", standing.policy.str()},
          {"qualification", text_or_null(standing.qualification)},
          {"certificate", text_or_null(standing.certificate)},
          {"records", standing.records},
          {"since", time_or_null(standing.since)},
          {"until", time_or_null(standing.until)},
          {"supporting", standing.supporting},
          {"parts", std::move(parts)}};
}

Json to_json(const standing::ReleaseStanding& release) {
  Json gates = Json::array();
  for (const auto& gate : release.content.gates) {
    gates.push_back({{"gate", gate.gate},
                     {"policy", gate.policy.str()},
                     {"certificate", text_or_null(gate.certificate)},
                     {"decisions", gate.decisions},
                     {"waivers", gate.waivers},
                     {"rests_on", gate.rests_on}});
  }
  Json bundles = Json::object();
  for (const auto& [name, bundle] : release.content.bundles) bundles[name] = bundle.str();
  return {{"release", release.release},
          {"status", standing::name_of(release.status)},
          {"reasons", release.reasons},
          {"next", text_or_null(release.next)},
          {"digest", release.content.digest().str()},
          {"gates", std::move(gates)},
          {"bundles", std::move(bundles)},
          {"approved_by", release.people},
          {"approvals", release.approvals},
          {"needed", release.needed},
          {"signoff", text_or_null(release.signoff)},
          {"since", time_or_null(release.since)}};
}

}  // namespace qualify::cli
