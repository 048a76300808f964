#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "../gate_reading.hpp"

namespace qualify::policy {

namespace {

const std::vector<std::string> kDecisions = {"change-overhead", "mode-overhead"};

/// `pairs`, and `looks` where the gate decides at more than one number of pairs.
void read_looks(spec::Fields& fields, Gate& gate) {
  fields.each("looks", "look of gate '" + gate.name + "'", [&](spec::Fields& look) {
    const auto pairs = static_cast<std::uint32_t>(look.integer("pairs", 4, 4, kMaxRuns));
    const double alpha = read_decimal(
        look, "alpha", 0, 0.5, "the share of the 5% error that this look spends, such as 0.01");
    gate.looks.push_back({pairs, alpha});
  });
  const std::uint32_t last = gate.looks.empty() ? 4 : gate.looks.back().pairs;
  gate.pairs = static_cast<std::uint32_t>(fields.integer("pairs", last, 1, kMaxRuns));
  if (gate.looks.empty()) return;
  if (gate.pairs != last) {
    fields.fault(fields.mark("pairs"), "pairs must be those of the last look",
                 "leave 'pairs' out, or write " + std::to_string(last));
  }
  if (auto ok = statistics::check_looks(gate.looks, kAlpha); !ok) {
    fields.fault(fields.mark("looks"), ok.error().message,
                 "alphas must add up to at most 0.05, such as 0.01 at 4 pairs and 0.04 at 6");
  }
}

statistics::Recurring read_recurring(spec::Fields& exclude, const std::string& key) {
  statistics::Recurring event;
  exclude.section(key, "'" + key + "' exclusion", [&](spec::Fields& fields) {
    event.every = fields.integer("every", 0, 1, kMaxSteps);
    event.after = fields.integer("after", 1, 0, kMaxSteps);
    if (!fields.has("every")) fields.fault(fields.mark(), "'" + key + "' needs 'every'");
  });
  return event;
}

void read_exclusions(spec::Fields& exclude, statistics::ExclusionCalendar& calendar) {
  calendar.init_steps = exclude.integer("init_steps", 1, 0, kMaxSteps);
  calendar.first_iterations = exclude.integer("first_iterations", 0, 0, kMaxSteps);
  calendar.warmup_steps = exclude.integer("warmup_steps", 0, 0, kMaxSteps);
  calendar.evaluation = read_recurring(exclude, "evaluation");
  calendar.checkpoint = read_recurring(exclude, "checkpoint");
  exclude.each("profiler", "'profiler' exclusion", [&](spec::Fields& fields) {
    const std::int64_t first = fields.integer("first", 0, 1, kMaxSteps);
    const std::int64_t last = fields.integer("last", first, 1, kMaxSteps);
    if (!fields.has("first") || last < first) {
      fields.fault(fields.mark(), "a range needs 'first' and a 'last' that is not before it");
    }
    calendar.profiler.push_back({first, last});
  });
  calendar.restarts = exclude.integers("restarts");
}

Json recurring_json(const statistics::Recurring& event) {
  if (event.every == 0) return nullptr;
  return {{"every", event.every}, {"after", event.after}};
}

Json exclusions_json(const statistics::ExclusionCalendar& calendar) {
  Json profiler = Json::array();
  for (const auto& range : calendar.profiler) {
    profiler.push_back({{"first", range.first}, {"last", range.last}});
  }
  return {{"init_steps", calendar.init_steps},
          {"first_iterations", calendar.first_iterations},
          {"warmup_steps", calendar.warmup_steps},
          {"evaluation", recurring_json(calendar.evaluation)},
          {"checkpoint", recurring_json(calendar.checkpoint)},
          {"profiler", std::move(profiler)},
          {"restarts", calendar.restarts}};
}

Json looks_json(const Gate& gate) {
  Json looks = Json::array();
  for (const statistics::Look& look : registered_looks(gate)) {
    looks.push_back({{"pairs", look.pairs}, {"alpha", look.alpha}});
  }
  return looks;
}

}  // namespace

double read_decimal(spec::Fields& fields, const char* key, double above, double most,
                    const std::string& hint) {
  const std::string text = fields.required_text(key);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() ||
      !(number > above && number <= most)) {
    fields.fault(
        fields.mark(key),
        fmt::format("{} '{}' is not a number above {}, and at most {}", key, text, above, most),
        hint);
  }
  return number;
}

void read_timing(spec::Fields& fields, Gate& gate) {
  gate.metric = fields.text("metric", "iteration-time");
  read_looks(fields, gate);
  gate.placebo_pairs = static_cast<std::uint32_t>(fields.integer("placebo_pairs", 1, 0, kMaxRuns));
  fields.section("exclude", "exclusions of gate '" + gate.name + "'",
                 [&](spec::Fields& exclude) { read_exclusions(exclude, gate.exclude); });
}

void write_timing(const Gate& gate, Json& json) {
  json["pairs"] = gate.pairs;
  json["metric"] = gate.metric;
  json["placebo_pairs"] = gate.placebo_pairs;
  json["looks"] = looks_json(gate);
  json["exclude"] = exclusions_json(gate.exclude);
}

void read_performance(spec::Fields& fields, Gate& gate) {
  fields.section("arms", "arms of gate '" + gate.name + "'", [&](spec::Fields& arms) {
    gate.deterministic_arm = arms.required_text("deterministic");
    gate.nondeterministic_arm = arms.required_text("nondeterministic");
    if (!gate.deterministic_arm.empty() && gate.deterministic_arm == gate.nondeterministic_arm) {
      arms.fault(arms.mark("nondeterministic"), "both arms are '" + gate.deterministic_arm + "'",
                 "what determinism costs needs an arm with it and one without");
    }
  });
  if (!fields.has("arms")) {
    fields.fault(fields.mark(), "gate '" + gate.name + "' needs 'arms'",
                 "arms: {deterministic: NAME, nondeterministic: NAME}");
  }
  gate.decision = kDecisions[fields.choice("decision", kDecisions, 0)];
  read_timing(fields, gate);
}

void write_performance(const Gate& gate, Json& json) {
  json["arms"] = {{"deterministic", gate.deterministic_arm},
                  {"nondeterministic", gate.nondeterministic_arm}};
  json["decision"] = gate.decision;
  write_timing(gate, json);
}

}  // namespace qualify::policy
