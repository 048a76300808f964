#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "qualify/exactness/compare.hpp"

namespace qualify::exactness {

namespace {

Json scalar(const evidence::Scalar& value) {
  const bool narrow = value.precision == evidence::Precision::float32_bits;
  const bool digest = value.precision == evidence::Precision::sha256 ||
                      value.precision == evidence::Precision::weak_digest;
  return {{"precision", evidence::name_of(value.precision)},
          {"digits", value.digits > 0 ? Json(value.digits) : Json(nullptr)},
          {"bits", digest ? Json(nullptr)
                          : Json(narrow ? fmt::format("0x{:08x}", value.bits)
                                        : fmt::format("0x{:016x}", value.bits))},
          {"text", value.str()}};
}

/// [[first, last], …]
Json range_list(const Iterations& iterations) {
  Json list = Json::array();
  for (const auto& [first, last] : iterations.ranges()) list.push_back({first, last});
  return list;
}

}  // namespace

const char* claim_of(Level level) {
  switch (level) {
    case Level::e0:
      return "structural match";
    case Level::e1:
      return "metric match";
    case Level::e2:
    case Level::e3:
      return "diagnostic match";
    case Level::e4:
      return "exact-value match, for the captured boundaries";
  }
  return "";
}

const char* name_of(Level level) {
  switch (level) {
    case Level::e0:
      return "E0";
    case Level::e1:
      return "E1";
    case Level::e2:
      return "E2";
    case Level::e3:
      return "E3";
    case Level::e4:
      return "E4";
  }
  return "E0";
}

Result<Level> parse_level(const std::string& text) {
  for (const Level level : {Level::e0, Level::e1, Level::e2, Level::e3, Level::e4}) {
    if (text == name_of(level)) return level;
  }
  return fail(Errc::invalid_input, "\"" + text + "\" is no level of evidence", {},
              "Levels are E0, E1, E2, E3 and E4");
}

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::equal:
      return "equal";
    case Outcome::differs:
      return "differs";
    case Outcome::inconclusive:
      return "inconclusive";
  }
  return "inconclusive";
}

Json to_json(const Comparison& comparison) {
  Json metrics = Json::array();
  for (const MetricComparison& metric : comparison.metrics) {
    Json first = nullptr;
    if (metric.first) {
      first = {
          {"iteration", metric.first->iteration},
          {"a", scalar(metric.first->a)},
          {"b", scalar(metric.first->b)},
          // Beyond 2^53 a JSON number is not exact: a string.
          {"ulps", metric.first->ulps ? Json(std::to_string(*metric.first->ulps)) : Json(nullptr)}};
    }
    metrics.push_back({{"metric", metric.metric},
                       {"outcome", name_of(metric.outcome)},
                       {"level", metric.level ? Json(name_of(*metric.level)) : Json(nullptr)},
                       {"why", metric.why.empty() ? Json(nullptr) : Json(metric.why)},
                       {"compared", metric.compared},
                       {"differing", metric.differing},
                       {"only_in_a", range_list(metric.only_in_a)},
                       {"only_in_b", range_list(metric.only_in_b)},
                       {"first", std::move(first)}});
  }
  const MetricComparison* divergence = comparison.first_divergence();
  return {{"schema_version", 1},
          {"outcome", name_of(comparison.outcome)},
          {"level", comparison.level ? Json(name_of(*comparison.level)) : Json(nullptr)},
          {"reasons", comparison.reasons},
          {"first_divergence", divergence == nullptr
                                   ? Json(nullptr)
                                   : Json({{"metric", divergence->metric},
                                           {"iteration", divergence->first->iteration}})},
          {"metrics", std::move(metrics)},
          {"excluded", comparison.excluded},
          {"same_run_filed_twice", comparison.same_run_filed_twice}};
}

}  // namespace qualify::exactness
