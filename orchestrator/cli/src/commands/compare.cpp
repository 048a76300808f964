#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "../commands.hpp"
#include "../table.hpp"
#include "qualify/evidence/metrics.hpp"
#include "qualify/exactness/compare.hpp"

namespace qualify::cli {

namespace {

struct Options {
  std::string a;
  std::string b;
  std::string format;
  std::int64_t from = 0;
  std::int64_t to = 0;
  bool json = false;
};

/// Rows of the table at most: the traces of four ranks have a hundred boundaries. --json has all.
constexpr std::size_t kMostRows = 24;

std::string shown(const evidence::Scalar& scalar) {
  constexpr std::size_t kDigestDigits = 64;
  if (scalar.text.size() == kDigestDigits) return scalar.text.substr(0, 12);
  if (!scalar.text.empty()) return scalar.text;
  if (scalar.precision == evidence::Precision::integer) {
    return std::to_string(static_cast<std::int64_t>(scalar.bits));
  }
  return scalar.precision == evidence::Precision::float32_bits
             ? fmt::format("{:.9g}", static_cast<float>(scalar.value()))
             : fmt::format("{:.17g}", scalar.value());
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
  command->add_flag("--json", options->json, "Print one JSON record");
  command->callback([&session, options] { session.finish(run_compare(session, *options)); });
}

}  // namespace qualify::cli
