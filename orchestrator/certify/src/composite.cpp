#include "qualify/certify/composite.hpp"

#include <nlohmann/json.hpp>
#include <set>

#include "qualify/certify/statement.hpp"

namespace qualify::certify {

namespace {

Result<void> must_be_whole(const CompositeResult& result) {
  const std::string where = "gate " + result.gate.name;
  const auto parts = policy::parts_of(result.gate);
  if (parts.empty()) return fail(Errc::invalid_input, "a gate that rests on no others", where);
  if (parts.size() != result.parts.size()) {
    return fail(Errc::invalid_input,
                std::to_string(result.parts.size()) + " of " + std::to_string(parts.size()) +
                    " parts are cited",
                where);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const PartCitation& cited = result.parts[i];
    if (cited.name != parts[i].name || cited.gate != parts[i].gate) {
      return fail(Errc::invalid_input,
                  "part " + cited.name + " stands where " + parts[i].name + " belongs", where);
    }
    if (cited.certificate.empty() == cited.decisions.empty()) {
      return fail(Errc::invalid_input,
                  "part " + cited.name + " is closed by a certificate or by decisions, not by " +
                      (cited.certificate.empty() ? "neither" : "both"),
                  where);
    }
  }
  if (result.bundles.empty()) return fail(Errc::invalid_input, "it speaks of no bundle", where);
  return {};
}

}  // namespace

Result<Json> composite_statement(const CompositeResult& result) {
  if (auto whole = must_be_whole(result); !whole) return tl::unexpected(whole.error());
  Json subjects = Json::array();
  std::set<Digest> seen;
  for (const auto& [name, digest] : result.bundles) {
    if (!seen.insert(digest).second) continue;
    subjects.push_back({{"name", name}, {"digest", {{"sha256", digest.hex()}}}});
  }
  Json parts = Json::array();
  Json tests = Json::array();
  for (const PartCitation& part : result.parts) {
    parts.push_back(
        {{"name", part.name},
         {"gate", part.gate},
         {"certificate", part.certificate.empty() ? Json(nullptr) : Json(part.certificate)},
         {"decisions", part.decisions}});
    tests.push_back(result.gate.name + ": " + part.name + " by gate " + part.gate);
  }
  const Digest policy = policy_digest(result.gate);
  Json own = {
      {"schema_version", 1},
      {"gate", result.gate.name},
      {"policy", {{"digest", policy.str()}, {"gate", to_json(result.gate)}}},
      {"verdict", "pass"},
      {"reasons", result.reasons},
      {"level", nullptr},
      {"claim", nullptr},
      {"limits", Json::array({"says what its parts say, each of its own bundle and scope"})},
      {"parts", std::move(parts)}};
  return Json{{"_type", "https://in-toto.io/Statement/v1"},
              {"subject", std::move(subjects)},
              {"predicateType", kTestResultPredicate},
              {"predicate",
               {{"result", "PASSED"},
                {"configuration",
                 Json::array({{{"name", "policy"}, {"digest", {{"sha256", policy.hex()}}}}})},
                {"passedTests", std::move(tests)},
                {"warnedTests", Json::array()},
                {"failedTests", Json::array()},
                {"qualify", std::move(own)}}}};
}

}  // namespace qualify::certify
