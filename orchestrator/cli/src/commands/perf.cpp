#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "../commands.hpp"
#include "../subject.hpp"
#include "qualify/base/files.hpp"
#include "qualify/evidence/metrics.hpp"
#include "qualify/policy/judge.hpp"
#include "qualify/report/overhead.hpp"

namespace qualify::cli {

namespace {

struct Options {
  std::vector<std::string> deterministic;
  std::vector<std::string> nondeterministic;
  std::vector<std::string> placebo;
  std::vector<std::string> orders;
  std::vector<std::string> profiler;
  std::string format;
  std::string gate;
  std::string gate_file = "qualification.yaml";
  std::string plot;
  policy::Gate ad_hoc;  ///< what the other options say
  bool json = false;
};

/// Megatron prints its arguments at the start of the log: "deterministic_mode ....... True".
/// Null where no text says so; both answers in one run cannot be told and give null too.
std::optional<bool> says_deterministic(const std::vector<std::string>& sources) {
  constexpr std::size_t head_bytes = 1U << 20U;
  std::optional<bool> said;
  for (const std::string& source : sources) {
    std::ifstream file(source, std::ios::binary);
    std::string head(head_bytes, '\0');
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<std::size_t>(file.gcount()));
    const std::string key = "deterministic_mode .";
    for (auto at = head.find(key); at != std::string::npos; at = head.find(key, at + 1)) {
      const auto value = head.find_first_not_of(" .", at + key.size());
      if (value == std::string::npos) continue;
      const bool yes = head.compare(value, 4, "True") == 0;
      if (!yes && head.compare(value, 5, "False") != 0) continue;
      if (said && *said != yes) return std::nullopt;
      said = yes;
    }
  }
  return said;
}

Result<policy::RunEvidence> read_run(const Session& session, const Options& options,
                                     const std::string& path, const std::string& arm,
                                     std::uint32_t pair) {
  auto metrics =
      evidence::read_metrics(session.folder / path, options.format, scratch_folder(session));
  if (!metrics) return tl::unexpected(metrics.error());
  policy::RunEvidence run;
  run.run = path;
  run.arm = arm;
  run.pair = pair;
  run.complete = true;
  run.says_deterministic = says_deterministic(metrics->sources);
  run.metrics = std::move(*metrics);
  return run;
}

/// "20-25"
Result<statistics::StepRange> range_of(const std::string& text) {
  statistics::StepRange range;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, range.first);
  if (first.ec == std::errc{} && first.ptr != end && *first.ptr == '-') {
    const auto last = std::from_chars(first.ptr + 1, end, range.last);
    if (last.ec == std::errc{} && last.ptr == end && range.first <= range.last) return range;
  }
  return fail(Errc::usage, "not a range of steps: '" + text + "'", "--profiler",
              "write it as FIRST-LAST, such as 20-25");
}

/// The criteria: a declared gate, or what the options say.
Result<policy::Gate> gate_of(const Session& session, const Options& options) {
  if (!options.gate.empty()) {
    auto gate = find_gate(session, options.gate_file, options.gate);
    if (gate && gate->kind != policy::GateKind::performance) {
      return fail(Errc::usage, "gate '" + options.gate + "' is not a performance gate");
    }
    return gate;
  }
  policy::Gate gate = options.ad_hoc;
  gate.name = "perf";
  gate.kind = policy::GateKind::performance;
  gate.deterministic_arm = "deterministic";
  gate.nondeterministic_arm = "nondeterministic";
  gate.pairs = static_cast<std::uint32_t>(options.deterministic.size());
  gate.placebo_pairs = static_cast<std::uint32_t>(options.placebo.size() / 2);
  for (const std::string& text : options.profiler) {
    const auto range = range_of(text);
    if (!range) return tl::unexpected(range.error());
    gate.exclude.profiler.push_back(*range);
  }
  return gate;
}

Result<void> check_lists(const Options& options) {
  if (options.deterministic.size() != options.nondeterministic.size()) {
    return fail(Errc::usage,
                fmt::format("{} deterministic and {} nondeterministic runs are no pairs",
                            options.deterministic.size(), options.nondeterministic.size()),
                {}, "give --det and --nondet the same number of files, in the order of the pairs");
  }
  if (options.placebo.size() % 2 != 0) {
    return fail(Errc::usage, "a placebo pair is two runs of one arm", "--placebo");
  }
  if (!options.orders.empty() && options.orders.size() != options.deterministic.size()) {
    return fail(Errc::usage, "--order needs one entry a pair", "--order",
                "such as --order AB,BA,AB,BA");
  }
  return {};
}

/// All runs in the order in which they ran, as far as --order says; unknown: deterministic first.
Result<std::vector<policy::RunEvidence>> read_runs(const Session& session, const Options& options,
                                                   const policy::Gate& gate) {
  std::vector<policy::RunEvidence> runs;
  const auto read = [&](const std::string& path, const std::string& arm,
                        std::uint32_t pair) -> Result<void> {
    auto run = read_run(session, options, path, arm, pair);
    if (!run) return tl::unexpected(run.error());
    runs.push_back(std::move(*run));
    return {};
  };
  std::uint32_t pair = 0;
  for (std::size_t i = 0; i < options.deterministic.size(); ++i) {
    ++pair;
    const bool swapped = !options.orders.empty() && options.orders[i] == "BA";
    for (const bool first : {true, false}) {
      const bool deterministic = first != swapped;
      const auto done = deterministic
                            ? read(options.deterministic[i], gate.deterministic_arm, pair)
                            : read(options.nondeterministic[i], gate.nondeterministic_arm, pair);
      if (!done) return tl::unexpected(done.error());
    }
  }
  for (std::size_t i = 0; i < options.placebo.size(); ++i) {
    if (i % 2 == 0) ++pair;
    if (auto done = read(options.placebo[i], gate.nondeterministic_arm, pair); !done) {
      return tl::unexpected(done.error());
    }
  }
  return runs;
}

Result<Exit> run_perf(Session& session, const Options& options) {
  if (auto fit = check_lists(options); !fit) return tl::unexpected(fit.error());
  const auto gate = gate_of(session, options);
  if (!gate) return tl::unexpected(gate.error());
  const auto runs = read_runs(session, options, *gate);
  if (!runs) return tl::unexpected(runs.error());

  std::vector<statistics::Fault> faults;
  auto request = policy::overhead_request(*gate, *runs, faults);
  if (options.orders.empty()) {
    for (auto& pair : request.pairs) pair.order.reset();
  }
  const policy::Judgement judgement = policy::judge_overhead(request, std::move(faults));
  if (!options.plot.empty()) {
    const auto written = write_file_atomic(
        session.folder / options.plot, report::overhead_plot(request, *judgement.overhead), 0644);
    if (!written) return tl::unexpected(written.error());
  }
  if (options.json) {
    Json record = statistics::to_json(*judgement.overhead);
    record["policy"] = to_json(*gate);
    session.print_json(std::move(record));
  } else {
    session.out << report::overhead_text(*judgement.overhead, session.width);
    if (!options.plot.empty()) session.out << "\nPlot: " << options.plot << "\n";
  }
  return policy::exit_for(judgement.verdict);
}

}  // namespace

void add_perf(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "perf", "What determinism costs: pairs of runs in, a verdict with error bars out");
  policy::Gate& gate = options->ad_hoc;
  statistics::ExclusionCalendar& exclude = gate.exclude;
  command->add_option("--det", options->deterministic, "Runs of the deterministic arm")
      ->required()
      ->type_name("FILE");
  command->add_option("--nondet", options->nondeterministic, "Runs of the other arm, same order")
      ->required()
      ->type_name("FILE");
  command->add_option("--placebo", options->placebo, "Pairs of runs of one arm, two by two")
      ->type_name("FILE");
  command->add_option("--order", options->orders, "What ran first in each pair: AB,BA,AB,BA")
      ->type_name("ORDER")
      ->delimiter(',')
      ->check(CLI::IsMember({"AB", "BA"}));
  command->add_option("--policy", gate.decision, "change-overhead or mode-overhead")
      ->type_name("POLICY")
      ->check(CLI::IsMember({"change-overhead", "mode-overhead"}))
      ->capture_default_str();
  command->add_option("--metric", gate.metric, "Seconds a step")
      ->type_name("METRIC")
      ->capture_default_str();
  command->add_option("--format", options->format, "Reader (default: told by content)")
      ->type_name("FORMAT");
  const auto steps = [&](const char* name, std::int64_t& value, const char* help) {
    return command->add_option(name, value, help)
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str()
        ->type_name("STEPS");
  };
  std::vector<CLI::Option*> criteria = {
      steps("--init-steps", exclude.init_steps, "First steps that are start-up"),
      steps("--first-iterations", exclude.first_iterations, "Then: compilation, autotuning"),
      steps("--warmup-steps", exclude.warmup_steps, "Then: warm-up"),
      steps("--evaluation-every", exclude.evaluation.every, "Evaluation interval, 0 = none"),
      steps("--checkpoint-every", exclude.checkpoint.every, "Checkpoint interval, 0 = none"),
      command->add_option("--profiler", options->profiler, "Profiled steps, FIRST-LAST")
          ->type_name("RANGE"),
      command->add_option("--restart", exclude.restarts, "First steps after a restart")
          ->type_name("STEP"),
  };
  CLI::Option* named =
      command->add_option("--gate", options->gate, "Criteria of this gate in place of options")
          ->type_name("GATE");
  for (CLI::Option* option : criteria) named->excludes(option);
  named->excludes(command->get_option("--policy"));
  named->excludes(command->get_option("--metric"));
  command->add_option("-f,--file", options->gate_file, "Where the gate is declared")
      ->type_name("FILE")
      ->capture_default_str()
      ->needs(named);
  command->add_option("--plot", options->plot, "Write a picture of it")->type_name("SVG");
  command->add_flag("--json", options->json, "Print one JSON record");
  command->callback([&session, options] { session.finish(run_perf(session, *options)); });
}

}  // namespace qualify::cli
