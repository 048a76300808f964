#include "qualify/traces/manifest.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "qualify/base/digest.hpp"

namespace qualify::traces {

namespace {

constexpr std::array kInputs = {"model", "data", "seed", "code", "container", "environment"};
constexpr std::size_t kMostRanks = 1'000'000;

bool whole(std::string_view text, std::int64_t& to) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  return error == std::errc{} && stop == text.data() + text.size() && to >= 0 && !text.empty();
}

Unexpected bad_ranks(std::string_view text) {
  return fail(Errc::invalid_input, "not a set of ranks: \"" + std::string(text) + "\"", {},
              "such as 0-3, 0-3064:8 or 1,5,7");
}

/// A digest or text, whatever JSON holds it: objects by their canonical bytes.
Result<std::string> as_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return canonical_json(value);
}

struct Reading {
  const Json& json;
  const std::string& context;

  [[nodiscard]] Unexpected bad(const std::string& member, const std::string& what) const {
    return fail(Errc::invalid_input, "\"" + member + "\" " + what, context);
  }
  Result<void> text(const char* member, std::string& to) const {
    const auto found = json.find(member);
    if (found == json.end() || found->is_null()) return {};
    if (!found->is_string()) return bad(member, "is no text");
    to = found->get<std::string>();
    return {};
  }
};

Result<std::vector<std::int64_t>> ranks_of(const Json& value) {
  if (value.is_string()) return parse_ranks(value.get<std::string>());
  std::vector<std::int64_t> ranks;
  if (!value.is_array()) return fail(Errc::invalid_input, "ranks are a list or a text");
  for (const Json& rank : value) {
    if (!rank.is_number_integer() || rank < 0)
      return fail(Errc::invalid_input, "a rank is no whole number");
    ranks.push_back(rank.get<std::int64_t>());
  }
  return ranks;
}

Result<void> read_groups(const Reading& in, Manifest& to) {
  const auto groups = in.json.find("groups");
  if (groups == in.json.end() || groups->is_null()) return {};
  if (!groups->is_object()) return in.bad("groups", "is no object");
  for (const auto& [name, value] : groups->items()) {
    auto ranks = ranks_of(value);
    if (!ranks) return in.bad("groups." + name, ranks.error().message);
    to.groups.emplace(name, std::move(*ranks));
  }
  return {};
}

/// `ranks`: [[tp, pp, vpp, dp, ep, cp], …] by rank, trailing zeros may be left out.
Result<void> read_coordinates(const Reading& in, Manifest& to) {
  const auto rows = in.json.find("ranks");
  if (rows == in.json.end() || rows->is_null()) return {};
  if (!rows->is_array()) return in.bad("ranks", "is no list");
  for (const Json& row : *rows) {
    Coordinates c;
    const std::array<std::int64_t*, 6> at = {&c.tp, &c.pp, &c.vpp, &c.dp, &c.ep, &c.cp};
    if (!row.is_array() || row.size() > at.size()) {
      return in.bad("ranks", "holds other than [tp, pp, vpp, dp, ep, cp]");
    }
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!row[i].is_number_integer()) return in.bad("ranks", "holds other than whole numbers");
      *at[i] = row[i].get<std::int64_t>();
    }
    to.coordinates.push_back(c);
  }
  return {};
}

}  // namespace

std::string ranks_text(const std::vector<std::int64_t>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    const std::int64_t step = end < ranks.size() ? ranks[end] - ranks[i] : 0;
    if (step > 0) {
      while (end + 1 < ranks.size() && ranks[end + 1] - ranks[end] == step) ++end;
    }
    if (!text.empty()) text += ',';
    if (step > 0 && (end - i >= 2 || step == 1)) {
      text += std::to_string(ranks[i]) + "-" + std::to_string(ranks[end]);
      if (step > 1) text += ":" + std::to_string(step);
      i = end + 1;
    } else {
      text += std::to_string(ranks[i]);
      ++i;
    }
  }
  return text;
}

Result<std::vector<std::int64_t>> parse_ranks(std::string_view text) {
  std::vector<std::int64_t> ranks;
  const std::string_view all = text;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    std::int64_t step = 1;
    if (const std::size_t colon = part.find(':'); colon != std::string_view::npos) {
      if (!whole(part.substr(colon + 1), step) || step == 0) return bad_ranks(all);
      part = part.substr(0, colon);
    }
    const std::size_t dash = part.find('-');
    std::int64_t first = 0;
    if (!whole(part.substr(0, dash), first)) return bad_ranks(all);
    std::int64_t last = first;
    if (dash != std::string_view::npos && !whole(part.substr(dash + 1), last))
      return bad_ranks(all);
    if (last < first ||
        static_cast<std::size_t>((last - first) / step) >= kMostRanks - ranks.size())
      return bad_ranks(all);
    for (std::int64_t rank = first; rank <= last; rank += step) ranks.push_back(rank);
  }
  return ranks;
}

Result<Manifest> parse_manifest(const Json& json, const std::string& context) {
  const Reading in{json, context};
  if (!json.is_object()) return fail(Errc::invalid_input, "the manifest is no object", context);
  Manifest manifest;
  manifest.present = true;
  for (const char* name : kInputs) {
    const auto found = json.find(name);
    if (found == json.end() || found->is_null()) continue;
    auto text = as_text(*found);
    if (!text) return in.bad(name, text.error().message);
    manifest.inputs.emplace(name, std::move(*text));
  }
  if (const auto size = json.find("world_size"); size != json.end() && !size->is_null()) {
    if (!size->is_number_integer() || *size < 0 || *size > kMostRanks) {
      return in.bad("world_size", "is no number of ranks");
    }
    manifest.world_size = size->get<std::int64_t>();
  }
  if (const auto from = json.find("resumed_from"); from != json.end() && !from->is_null()) {
    if (!from->is_number_integer() || *from < 0) return in.bad("resumed_from", "is no iteration");
    manifest.resumed_from = from->get<std::int64_t>();
  }
  for (auto [member, to] : {std::pair("capture_level", &manifest.capture_level),
                            std::pair("capture_plan", &manifest.capture_plan),
                            std::pair("digest_algorithm", &manifest.digest_algorithm)}) {
    if (auto good = in.text(member, *to); !good) return tl::unexpected(good.error());
  }
  if (auto good = read_groups(in, manifest); !good) return tl::unexpected(good.error());
  if (auto good = read_coordinates(in, manifest); !good) return tl::unexpected(good.error());
  return manifest;
}

Json to_json(const Manifest& manifest) {
  Json json = {{"schema_version", 1}};
  for (const auto& [name, value] : manifest.inputs) json[name] = value;
  if (manifest.world_size > 0) json["world_size"] = manifest.world_size;
  if (manifest.resumed_from) json["resumed_from"] = *manifest.resumed_from;
  if (!manifest.capture_level.empty()) json["capture_level"] = manifest.capture_level;
  if (!manifest.capture_plan.empty()) json["capture_plan"] = manifest.capture_plan;
  if (!manifest.digest_algorithm.empty()) json["digest_algorithm"] = manifest.digest_algorithm;
  for (const auto& [name, ranks] : manifest.groups) json["groups"][name] = ranks_text(ranks);
  for (const Coordinates& c : manifest.coordinates) {
    json["ranks"].push_back(Json::array({c.tp, c.pp, c.vpp, c.dp, c.ep, c.cp}));
  }
  return json;
}

std::vector<std::string> differences(const Manifest& a, const Manifest& b,
                                     const std::vector<std::string>& allowed) {
  std::vector<std::string> found;
  const auto say = [&](const std::string& name, const std::string& in_a, const std::string& in_b) {
    if (in_a == in_b) return;
    const auto shown = [](const std::string& text) { return text.empty() ? "not said" : text; };
    found.push_back(name + ": " + shown(in_a) + " against " + shown(in_b));
  };
  if (a.present != b.present) {
    found.push_back(std::string("manifest: only ") + (a.present ? "A" : "B") + " has one");
    return found;
  }
  for (const char* name : kInputs) {
    if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) continue;
    const auto value = [&](const Manifest& of) {
      const auto at = of.inputs.find(name);
      return at == of.inputs.end() ? std::string() : at->second;
    };
    say(name, value(a), value(b));
  }
  say("ranks", std::to_string(a.world_size), std::to_string(b.world_size));
  say("capture level", a.capture_level, b.capture_level);
  say("capture plan", a.capture_plan, b.capture_plan);
  say("digest algorithm", a.digest_algorithm, b.digest_algorithm);
  for (const auto& [name, ranks] : a.groups) {
    const auto other = b.groups.find(name);
    say("group " + name, ranks_text(ranks),
        other == b.groups.end() ? std::string() : ranks_text(other->second));
  }
  for (const auto& [name, ranks] : b.groups) {
    if (!a.groups.contains(name)) say("group " + name, "", ranks_text(ranks));
  }
  const auto layout = [](const Manifest& of) {
    const Json json = to_json(of);
    return json.contains("ranks") ? digest_of(json["ranks"]).brief() : std::string();
  };
  say("parallel layout", layout(a), layout(b));
  return found;
}

}  // namespace qualify::traces
