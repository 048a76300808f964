#include "plan.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace qualify::tracer {

namespace {

using Json = nlohmann::json;

std::int64_t number(const std::string& text) {
  std::size_t used = 0;
  const long long value = std::stoll(text, &used);
  if (used != text.size() || value < 0) throw std::runtime_error("not a rank: " + text);
  return value;
}

/// "0-7,16" or "0-3064:8"
std::vector<std::int64_t> ranks_of(const std::string& text) {
  std::vector<std::int64_t> ranks;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t colon = part.find(':');
    const std::int64_t step = colon == std::string::npos ? 1 : number(part.substr(colon + 1));
    const std::string range = part.substr(0, colon);
    const std::size_t dash = range.find('-');
    const std::int64_t first = number(range.substr(0, dash));
    const std::int64_t last = dash == std::string::npos ? first : number(range.substr(dash + 1));
    if (step == 0 || last - first > 10'000'000)
      throw std::runtime_error("not a set of ranks: " + text);
    for (std::int64_t rank = first; rank <= last; rank += step) ranks.push_back(rank);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::string sha256_of(const std::string& text) {
  unsigned char raw[32];
  if (EVP_Digest(text.data(), text.size(), raw, nullptr, EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("OpenSSL cannot compute SHA-256");
  std::string hex = "sha256:";
  for (const unsigned char byte : raw) {
    hex += "0123456789abcdef"[byte >> 4U];
    hex += "0123456789abcdef"[byte & 15U];
  }
  return hex;
}

qtrace_level level_of(const std::string& text) {
  if (text == "L0") return QTRACE_L0;
  if (text == "L1") return QTRACE_L1;
  if (text == "L2") return QTRACE_L2;
  throw std::runtime_error("no capture level: " + text);
}

}  // namespace

const char* name_of(qtrace_level level) {
  return level == QTRACE_L0 ? "L0" : level == QTRACE_L1 ? "L1" : "L2";
}

qtrace_level Plan::at(std::int64_t rank, std::int64_t iteration, std::string_view phase,
                      std::string_view site) const {
  if (!given) return level;
  const bool inside =
      iteration >= first_iteration && iteration <= last_iteration &&
      (ranks.empty() || std::binary_search(ranks.begin(), ranks.end(), rank)) &&
      (phases.empty() || std::find(phases.begin(), phases.end(), phase) != phases.end()) &&
      (sites.empty() || std::any_of(sites.begin(), sites.end(), [&](const std::string& begins) {
         return site.starts_with(begins);
       }));
  return inside ? level : QTRACE_L0;
}

Plan read_plan(const qtrace_options& options) {
  Plan plan;
  plan.level = options.level;
  if (options.plan_file == nullptr) return plan;
  const std::string where = options.plan_file;
  std::ifstream file(where, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) throw std::runtime_error("cannot read the capture plan " + where);
  try {
    const Json json = Json::parse(text);
    if (!json.is_object()) throw std::runtime_error("not an object");
    for (const auto& [name, value] : json.items()) {
      if (name == "level")
        plan.level = level_of(value.get<std::string>());
      else if (name == "ranks")
        plan.ranks = ranks_of(value.get<std::string>());
      else if (name == "first_iteration")
        plan.first_iteration = value.get<std::int64_t>();
      else if (name == "last_iteration")
        plan.last_iteration = value.get<std::int64_t>();
      else if (name == "phases")
        plan.phases = value.get<std::vector<std::string>>();
      else if (name == "sites")
        plan.sites = value.get<std::vector<std::string>>();
      else if (name != "schema_version" || value != 1)
        throw std::runtime_error("unknown member " + name);
    }
    plan.given = true;
    plan.digest = sha256_of(json.dump());  // sorted, compact, whole numbers: canonical
  } catch (const std::exception& error) {
    throw std::runtime_error("the capture plan " + where + ": " + error.what());
  }
  return plan;
}

}  // namespace qualify::tracer
