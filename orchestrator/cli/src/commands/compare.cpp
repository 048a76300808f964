#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "../commands.hpp"
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

Result<void> draw(const Session& session, const Options& options, const evidence::RunMetrics& a,
                  const evidence::RunMetrics& b, const exactness::Comparison& comparison,
                  const exactness::Options& range) {
  const std::string metric =
      options.metric.empty() ? exactness::metric_to_plot(comparison) : options.metric;
  const auto svg = exactness::plot_svg(a, b, metric, options.a, options.b, range);
  if (!svg) return tl::unexpected(svg.error());
  return write_file_atomic(session.folder / options.plot, *svg);
}

Result<Exit> run_compare(Session& session, const Options& options) {
  const auto read = [&](const std::string& path) {
    return evidence::read_metrics(session.folder / path, options.format);
  };
  const auto a = read(options.a);
  if (!a) return tl::unexpected(a.error());
  const auto b = read(options.b);
  if (!b) return tl::unexpected(b.error());
  exactness::Options range;
  if (options.from > 0) range.from_iteration = options.from;
  if (options.to > 0) range.to_iteration = options.to;
  const exactness::Comparison comparison = exactness::compare(*a, *b, range);
  if (!options.plot.empty()) {
    if (auto drawn = draw(session, options, *a, *b, comparison, range); !drawn) {
      return tl::unexpected(drawn.error());
    }
  }
  if (options.json) {
    Json json = to_json(comparison);
    json["a"] = options.a;
    json["b"] = options.b;
    session.print_json(std::move(json));
  } else {
    print(session, comparison);
  }
  return exit_for(comparison.outcome);
}

}  // namespace

void add_compare(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "compare", "Compare two runs bit for bit: folders or metric files, no state needed");
  command->add_option("A", options->a, "Folder or file of the first run")
      ->type_name("PATH")
      ->required();
  command->add_option("B", options->b, "Folder or file of the second run")
      ->type_name("PATH")
      ->required();
  command->add_option("--format", options->format, "Reader (default: told by content)")
      ->type_name("FORMAT");
  command->add_option("--from-iteration", options->from, "First iteration to compare")
      ->type_name("N");
  command->add_option("--to-iteration", options->to, "Last iteration to compare")->type_name("N");
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
