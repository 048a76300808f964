#include "arguments.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdlib>
#include <map>

namespace stand_in {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// Fills in what the environment says; the text of what is wrong with it, or empty.
std::string read_environment(Arguments& arguments) {
  const auto rank = number(variable("RANK"));
  const auto world = number(variable("WORLD_SIZE"));
  if (!rank || !world || *rank >= *world)
    return "RANK and WORLD_SIZE do not say which rank this is";
  arguments.rank = *rank;
  arguments.world_size = *world;
  arguments.capture_plan = variable("QUALIFY_CAPTURE_PLAN");
  const std::string plant = variable("DETERMINISM_PLANT");
  if (plant.empty()) return {};
  const std::size_t colon = plant.find(':');
  const auto iteration = number(std::string_view(plant).substr(0, colon));
  const auto where =
      colon == std::string::npos ? std::nullopt : number(std::string_view(plant).substr(colon + 1));
  if (!iteration || !where || *where >= *world) {
    return "DETERMINISM_PLANT is not ITERATION:RANK of this run: " + plant;
  }
  if (*world > kMostShares) {
    return "DETERMINISM_PLANT needs a run of at most " + std::to_string(kMostShares) + " ranks";
  }
  arguments.plant = Plant{*iteration, *where};
  return {};
}

}  // namespace

Invocation read_arguments(int argc, const char* const* argv) {
  Arguments arguments;
  CLI::App app("Stands in for Megatron-LM where a qualification is rehearsed without GPUs");
  app.allow_extras();
  const std::map<std::string, qtrace_level> modes = {
      {"metadata", QTRACE_L0}, {"sampled", QTRACE_L1}, {"summary", QTRACE_L1}, {"full", QTRACE_L2}};
  app.add_option("--seed", arguments.seed);
  app.add_option("--train-iters", arguments.train_iters)->check(CLI::PositiveNumber);
  app.add_flag("--deterministic-mode", arguments.deterministic);
  app.add_option("--tensorboard-dir", arguments.tensorboard);
  app.add_option("--determinism-trace-dir", arguments.trace);
  app.add_option("--determinism-trace-mode", arguments.trace_level)
      ->transform(CLI::CheckedTransformer(modes));
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return {{}, app.help(), 0};
  } catch (const CLI::ParseError& error) {
    return {{}, std::string("megatron_stand_in: ") + error.what() + "\n", 2};
  }
  if (const std::string fault = read_environment(arguments); !fault.empty()) {
    return {{}, "megatron_stand_in: " + fault + "\n", 2};
  }
  return {std::move(arguments), {}, 0};
}

}  // namespace stand_in
