// Megatron's golden values: one JSON object, a metric a member. docs/formats/golden-values.md
// Written by tests/functional_tests/python_test_utils/get_test_results_from_tensorboard_logs.py.

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "source.hpp"

namespace qualify::evidence {

namespace {

constexpr std::uint64_t kLargest = 256ULL << 20U;

bool is_metric(const Json& member) {
  return member.is_object() && member.contains("values") && member["values"].is_object() &&
         member.contains("start_step");
}

/// What a JSON object of numbered records is, when it is one that Megatron's projects publish.
std::optional<std::string> other_schema(const Json& root) {
  if (!root.is_object() || root.empty()) return std::nullopt;
  const Json& first = root.begin().value();
  if (!first.is_object()) return std::nullopt;
  if (first.contains("input_prompt") || first.contains("generated_text")) {
    return "golden values of an inference test";
  }
  if (first.contains("lm loss") || first.contains("elapsed time per iteration (ms)")) {
    return "Megatron-Bridge's golden values";
  }
  return std::nullopt;
}

/// Legacy files are rounded to five decimals and lose trailing zeros: "10.9367" was 10.93670.
std::optional<Scalar> rounded(const std::string& metric, const Json& value) {
  if (value.is_number_integer()) return of_integer(value.get<std::int64_t>());
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  if (metric == "num-zeros" && number == std::floor(number) && std::fabs(number) < 9e15) {
    return of_integer(static_cast<std::int64_t>(number));
  }
  const std::string five = fmt::format("{:.5f}", number);
  auto scalar = parse_number(five);
  if (scalar && scalar->value() == number) return scalar;
  return parse_number(fmt::format("{}", number));
}

class Golden {
 public:
  explicit Golden(const Input& input) : source_(input.spool) {
    source_.format = "golden-values";
    source_.file = input.path.string();
  }

  void metric(const std::string& name, const Json& member) {
    Series& series = source_.series_named(name);
    const bool full = member.value("value_precision", Json()) == Json("full");
    std::map<std::int64_t, const Json*> steps;
    for (const auto& [key, value] : member["values"].items()) {
      std::int64_t step = 0;
      const auto [stop, error] = std::from_chars(key.data(), key.data() + key.size(), step);
      if (error != std::errc{} || stop != key.data() + key.size()) {
        source_.fault("bad-step", "\"" + name + "\" has the step \"" + key + "\"", "", name);
        continue;
      }
      if (!steps.emplace(step, &value).second) {
        source_.fault("duplicate-step", "\"" + name + "\" twice at step " + key, "", name, step);
      }
    }
    for (const auto& [step, value] : steps) {
      if (value->is_string()) {
        absent(name, step, value->get<std::string>());
        continue;
      }
      auto scalar = full && value->is_number_float() ? of_float64(value->get<double>())
                                                     : rounded(name, *value);
      if (!scalar) {
        source_.fault("malformed", "\"" + name + "\" is no number at step " + std::to_string(step),
                      "", name, step);
        continue;
      }
      if (series.kind == MetricKind::wall_clock) source_.mark(name + value->dump());
      source_.add(series, step, *scalar, "");
    }
    gaps(name, member, steps);
  }

  Source finish() { return std::move(source_); }

 private:
  /// Megatron writes "nan" for a step that TensorBoard lacks and for a value that is NaN alike.
  void absent(const std::string& name, std::int64_t step, const std::string& text) {
    const bool time = kind_of(name) != MetricKind::numeric;
    if (text == "nan" && time) return;
    source_.fault(text == "nan" ? "nan-or-missing" : "malformed",
                  "\"" + name + "\" is \"" + text + "\" at step " + std::to_string(step) +
                      (text == "nan" ? ": NaN, or never recorded; the file does not tell" : ""),
                  "", name, step);
  }

  void gaps(const std::string& name, const Json& member,
            const std::map<std::int64_t, const Json*>& steps) {
    const auto whole = [&](const char* key) -> std::int64_t {
      const Json value = member.value(key, Json());
      return value.is_number_integer() ? value.get<std::int64_t>() : 0;
    };
    const std::int64_t first = whole("start_step");
    const std::int64_t last = whole("end_step");
    const std::int64_t interval = whole("step_interval");
    if (interval < 1 || last < first || (last - first) / interval > 10'000'000) return;
    std::size_t missing = 0;
    std::int64_t example = 0;
    for (std::int64_t step = first; step <= last; step += interval) {
      if (!steps.contains(step) && missing++ == 0) example = step;
    }
    // A step interval counts from 1, or from the interval: one surplus end is no loss.
    if (missing > 1) {
      source_.fault("missing-step",
                    "\"" + name + "\" lacks " + std::to_string(missing) + " steps, the first is " +
                        std::to_string(example),
                    "", name);
    }
  }

  Source source_;
};

}  // namespace

Result<std::optional<Source>> read_golden(const Input& input) {
  const auto& [path, head, forced, spool] = input;
  const auto start = head.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || head[start] != '{') {
    if (!forced) return std::optional<Source>();
    return fail(Errc::invalid_input, head.empty() ? "is empty" : "is not a JSON object",
                path.string());
  }
  // A golden file's first member is an object; a line of JSON Lines closes before the next one.
  const bool by_look = head.find("\"start_step\"") != std::string_view::npos &&
                       head.find("\"values\"") != std::string_view::npos;
  const bool numbered = head.find("\"0\"", start) == head.find_first_not_of(" \t\r\n", start + 1);
  if (!forced && !by_look && !numbered) return std::optional<Source>();
  const auto text = read_file(path, kLargest);
  if (!text) return tl::unexpected(text.error());
  auto root = parse_json(*text, path.string());
  if (!root) {
    if (forced) return tl::unexpected(root.error());
    if (!by_look) return std::optional<Source>();
    Source damaged(spool);
    damaged.format = "golden-values";
    damaged.file = path.string();
    damaged.fault("truncated", root.error().message, "");
    return std::optional<Source>(std::move(damaged));
  }
  if (const auto other = other_schema(*root)) {
    return fail(Errc::unsupported, "these are " + *other + ", not a training run's metrics",
                path.string(),
                "Golden values of functional tests have \"start_step\" and \"values\"");
  }
  Golden golden(input);
  bool any = false;
  for (const auto& [name, member] : root->items()) {
    if (!is_metric(member)) continue;
    any = true;
    golden.metric(name, member);
  }
  if (!any) {
    if (!forced) return std::optional<Source>();
    return fail(Errc::invalid_input, "no member has \"start_step\" and \"values\"", path.string());
  }
  return std::optional<Source>(golden.finish());
}

}  // namespace qualify::evidence
