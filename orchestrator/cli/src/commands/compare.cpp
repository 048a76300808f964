#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "../commands.hpp"
#include "../subject.hpp"
#include "../table.hpp"
#include "qualify/base/files.hpp"
#include "qualify/evidence/metrics.hpp"
#include "qualify/exactness/compare.hpp"
#include "qualify/exactness/plot.hpp"

namespace qualify::cli {

namespace {

struct Options {
  std::string a;
  std::string b;
  std::string baseline;
  std::string format;
  std::string plot;
  std::string metric;
  std::int64_t from = 0;
  std::int64_t to = 0;
  bool json = false;
};

/// Rows of the table at most: the traces of four ranks have a hundred boundaries. --json has all.
constexpr std::size_t kMostRows = 24;

/// "1.0E+01" as printed, "10.574319 (0x41293069)" for bits, the beginning of a digest.
std::string shown(const evidence::Scalar& scalar) {
  using evidence::Precision;
  switch (scalar.precision) {
    case Precision::float32_bits:
      return fmt::format("{} (0x{:08x})", scalar.str(), scalar.bits);
    case Precision::float64_bits:
      return fmt::format("{} (0x{:016x})", scalar.str(), scalar.bits);
    case Precision::sha256:
    case Precision::weak_digest:
      return scalar.text.substr(0, 12);
    case Precision::integer:
    case Precision::printed:
      return scalar.str();
  }
  return scalar.str();
}

std::string detail(const exactness::MetricComparison& metric) {
  if (metric.first) {
    std::string text = fmt::format("from iteration {}: {} against {}", metric.first->iteration,
                                   shown(metric.first->a), shown(metric.first->b));
    if (metric.first->ulps) text += fmt::format(" ({} ulp)", *metric.first->ulps);
    return text + fmt::format("; {} of {} differ", metric.differing, metric.compared);
  }
  if (!metric.why.empty()) return metric.why;
  return fmt::format("{} iterations", metric.compared);
}

Exit exit_for(exactness::Outcome outcome) {
  switch (outcome) {
    case exactness::Outcome::equal:
      return Exit::ok;
    case exactness::Outcome::differs:
      return Exit::differs;
    case exactness::Outcome::inconclusive:
      return Exit::undecided;
  }
  return Exit::undecided;
}

/// All metrics by name; where there are too many, those that differ first, the earliest on top.
void print_metrics(Session& session, const exactness::Comparison& comparison) {
  std::vector<const exactness::MetricComparison*> rows;
  for (const auto& metric : comparison.metrics) rows.push_back(&metric);
  if (rows.size() > kMostRows) {
    const auto place = [](const exactness::MetricComparison* row) {
      return std::pair(static_cast<int>(row->outcome == exactness::Outcome::equal),
                       row->first ? row->first->iteration : 0);
    };
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const auto* a, const auto* b) { return place(a) < place(b); });
  }
  Table table({"METRIC", "RESULT", "DETAIL"});
  const std::size_t count = std::min(rows.size(), kMostRows);
  for (std::size_t i = 0; i < count; ++i) {
    table.add({rows[i]->metric, exactness::name_of(rows[i]->outcome), detail(*rows[i])});
  }
  if (!table.empty()) table.print(session.out, session.width);
  if (count < rows.size()) {
    const auto equal = std::count_if(rows.begin(), rows.end(), [](const auto* row) {
      return row->outcome == exactness::Outcome::equal;
    });
    session.out << fmt::format("… and {} more; of all {}, {} are equal (--json has every one)\n",
                               rows.size() - count, rows.size(), equal);
  }
}

void print(Session& session, const exactness::Comparison& comparison) {
  session.out << exactness::name_of(comparison.outcome);
  if (comparison.level) session.out << " at " << exactness::name_of(*comparison.level);
  if (const auto* first = comparison.first_divergence()) {
    session.out << ": first at iteration " << first->first->iteration << ", "
                << printable(first->metric);
  }
  session.out << "\n\n";
  print_metrics(session, comparison);
  if (!comparison.excluded.empty()) {
    std::string names;
    for (const std::string& name : comparison.excluded) {
      names += (names.empty() ? "" : ", ") + name;
    }
    session.out << "\nNot compared (time and memory): ";
    print_wrapped(session.out, names, 2, session.width - 32);
  }
  for (const std::string& reason : comparison.reasons) {
    session.out << "- ";
    print_wrapped(session.out, reason, 2, session.width);
  }
}

/// What the captured environments differ in, but for what only tells one run from another.
void print_environment(Session& session, const exactness::EnvironmentComparison& environment) {
  Table table({"ENVIRONMENT", "CLASS", "A AGAINST B"});
  std::size_t identity = 0;
  for (const auto& difference : environment.differences) {
    if (difference.kind == exactness::DifferenceClass::identity) {
      ++identity;
      continue;
    }
    table.add({difference.name, exactness::name_of(difference.kind),
               (difference.has_a ? difference.a : "(not set)") + " against " +
                   (difference.has_b ? difference.b : "(not set)")});
  }
  session.out << '\n';
  if (table.empty()) {
    print_wrapped(session.out,
                  fmt::format("Environments agree; {} differ in what tells runs apart (node names, "
                              "times, job ids).",
                              identity),
                  0, session.width);
    return;
  }
  table.print(session.out, session.width);
}

Result<void> draw(const Session& session, const Options& options, const Subject& a,
                  const Subject& b, const exactness::Comparison& comparison,
                  const exactness::Options& range) {
  const std::string metric =
      options.metric.empty() ? exactness::metric_to_plot(comparison) : options.metric;
  const auto svg = exactness::plot_svg(a.metrics, b.metrics, metric, a.label, b.label, range);
  if (!svg) return tl::unexpected(svg.error());
  return write_file_atomic(session.folder / options.plot, *svg);
}

/// A run against itself is equal whatever it did.
bool same_source(const Session& session, const Options& options, const Subject& a,
                 const Subject& b) {
  if (a.run && b.run) return a.run->evidence == b.run->evidence;
  std::error_code ignored;
  return !a.run && !b.run &&
         std::filesystem::equivalent(session.folder / options.a, session.folder / options.b,
                                     ignored);
}

/// What a run left before it broke off may be equal, and is no whole run.
void weigh_completeness(const Subject& subject, const char* side,
                        exactness::Comparison& comparison) {
  if (!subject.run || subject.run->complete) return;
  comparison.reasons.push_back(std::string(side) + " did not complete: " + subject.run->failure);
  if (comparison.outcome != exactness::Outcome::equal) return;
  comparison.outcome = exactness::Outcome::inconclusive;
  comparison.level.reset();
}

Result<void> check_usage(const Options& options) {
  if (options.to > 0 && options.from > options.to) {
    return fail(Errc::usage, "the first iteration to compare lies behind the last", {},
                "such as --from-iteration 51 --to-iteration 100");
  }
  if (options.baseline.empty() == options.b.empty()) {
    return fail(Errc::usage,
                options.b.empty() ? "one side is missing" : "three sides: A, B and a baseline", {},
                "qualify compare A B, or: qualify compare --baseline NAME RUN");
  }
  return {};
}

Result<Exit> run_compare(Session& session, const Options& options) {
  if (auto good = check_usage(options); !good) return tl::unexpected(good.error());
  // A baseline is what the other side is held against: it is A.
  const bool stored = !options.baseline.empty();
  const auto a = stored ? read_baseline_subject(session, options.baseline)
                        : read_subject(session, options.a, options.format);
  if (!a) return tl::unexpected(a.error());
  const auto b = read_subject(session, stored ? options.a : options.b, options.format);
  if (!b) return tl::unexpected(b.error());
  exactness::Options range;
  if (options.from > 0) range.from_iteration = options.from;
  if (options.to > 0) range.to_iteration = options.to;
  exactness::Comparison comparison = exactness::compare(a->metrics, b->metrics, range);
  if (same_source(session, options, *a, *b)) exactness::mark_one_run(comparison);
  weigh_completeness(*a, "A", comparison);
  weigh_completeness(*b, "B", comparison);
  const auto environment = compare_captured(session, *a, *b);
  if (!environment) return tl::unexpected(environment.error());
  if (*environment) exactness::weigh(**environment, comparison);
  if (!options.plot.empty()) {
    if (auto drawn = draw(session, options, *a, *b, comparison, range); !drawn) {
      return tl::unexpected(drawn.error());
    }
  }
  if (options.json) {
    Json json = to_json(comparison);
    json["a"] = a->label;
    json["b"] = b->label;
    json["baseline"] = stored ? Json(options.baseline) : Json(nullptr);
    json["environment"] = *environment ? exactness::to_json(**environment) : Json(nullptr);
    session.print_json(std::move(json));
  } else {
    print(session, comparison);
    if (*environment) print_environment(session, **environment);
  }
  return exit_for(comparison.outcome);
}

}  // namespace

void add_compare(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "compare", "Compare two runs bit for bit: files and folders need no state");
  command->add_option("A", options->a, "First run: folder, file, GATE/RUN or certificate id")
      ->type_name("RUN")
      ->required();
  command->add_option("B", options->b, "Second run; none with --baseline")->type_name("RUN");
  command
      ->add_option("--baseline", options->baseline,
                   "Hold A against a stored baseline (qualify baseline list)")
      ->type_name("NAME");
  command->add_option("--format", options->format, "Reader for files (default: told by content)")
      ->type_name("FORMAT");
  command->add_option("--from-iteration", options->from, "First iteration to compare")
      ->type_name("N")
      ->check(CLI::PositiveNumber.description(""));
  command->add_option("--to-iteration", options->to, "Last iteration to compare")
      ->type_name("N")
      ->check(CLI::PositiveNumber.description(""));
  CLI::Option* plot =
      command
          ->add_option("--plot", options->plot,
                       "Write a picture of one metric: both curves and their distance")
          ->type_name("SVG");
  command
      ->add_option("--metric", options->metric,
                   "Metric to plot (default: what differs first, else lm loss)")
      ->type_name("METRIC")
      ->needs(plot);
  command->add_flag("--json", options->json, "Print one JSON record");
  command->callback([&session, options] { session.finish(run_compare(session, *options)); });
}

}  // namespace qualify::cli
