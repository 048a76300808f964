// Comma or tab separated tables with a header that names the iteration. docs/formats/csv.md

#include <vector>

#include "qualify/evidence/lines.hpp"
#include "source.hpp"

namespace qualify::evidence {

namespace {

/// Cells of one row; "a ""quoted"" cell" as RFC 4180 has it, without newlines inside.
std::vector<std::string> cells(std::string_view row, char separator) {
  if (row.ends_with('\r')) row.remove_suffix(1);
  std::vector<std::string> all(1);
  bool quoted = false;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const char c = row[i];
    if (c == '"') {
      if (quoted && i + 1 < row.size() && row[i + 1] == '"') {
        all.back() += '"';
        ++i;
      } else {
        quoted = !quoted;
      }
    } else if (c == separator && !quoted) {
      all.emplace_back();
    } else {
      all.back() += c;
    }
  }
  return all;
}

class Table {
 public:
  Table(const Input& input, const std::vector<std::string>& header) : source_(input.spool) {
    source_.format = "csv";
    source_.file = input.path.string();
    for (std::size_t i = 0; i < header.size(); ++i) {
      if (!iteration_ && names_iteration(header[i])) {
        iteration_ = i;
        columns_.push_back(nullptr);
      } else {
        const std::string tag = tag_of(header[i]);
        if (source_.series.contains(tag)) {
          source_.fault("duplicate-column", "two columns are \"" + tag + "\"", ":1", tag);
        }
        columns_.push_back(&source_.series_named(tag));
        time_.resize(columns_.size());
        time_.back() = names_time(header[i]) || columns_.back()->kind == MetricKind::wall_clock;
      }
      time_.resize(columns_.size());
    }
  }

  [[nodiscard]] bool has_iteration() const { return iteration_.has_value(); }

  void row(const Line& line, char separator) {
    const std::string place = ":" + std::to_string(line.number);
    const auto row = cells(line.text, separator);
    if (!line.ended) {
      source_.fault("truncated", "the last row has no end of line: its last number may be cut off",
                    place);
      return;
    }
    if (row.size() != columns_.size()) {
      source_.fault("malformed",
                    std::to_string(row.size()) + " cells under " + std::to_string(columns_.size()) +
                        " columns",
                    place);
      return;
    }
    const auto step = parse_number(row[*iteration_]);
    if (!step || step->precision != Precision::integer) {
      source_.fault("bad-step", "\"" + row[*iteration_] + "\" is no iteration", place);
      return;
    }
    const auto iteration = static_cast<std::int64_t>(step->bits);
    restarted_ = restarted_ || (last_ && iteration < *last_);
    last_ = iteration;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (columns_[i] == nullptr || row[i].empty()) continue;
      if (time_[i]) source_.mark(row[i]);
      auto number = parse_number(row[i]);
      if (!number) {
        if (!time_[i]) {
          source_.fault("malformed",
                        "\"" + columns_[i]->name + "\" is \"" + row[i].substr(0, 80) + "\"", place,
                        columns_[i]->name, iteration);
        }
        continue;
      }
      // "1021640704.0" is the number of zeros in full.
      if (columns_[i]->name == "num-zeros" && row[i].ends_with(".0")) {
        const auto whole = parse_number(std::string_view(row[i]).substr(0, row[i].size() - 2));
        if (whole && whole->precision == Precision::integer) number = whole;
      }
      source_.add(*columns_[i], iteration, *number, place, restarted_);
    }
  }

  Source finish() {
    for (auto& [name, series] : source_.series) series.values.settle();
    return std::move(source_);
  }

 private:
  Source source_;
  std::vector<Series*> columns_;
  std::vector<bool> time_;
  std::optional<std::size_t> iteration_;
  std::optional<std::int64_t> last_;
  bool restarted_ = false;
};

}  // namespace

Result<std::optional<Source>> read_csv(const Input& input) {
  std::string_view head = input.head;
  if (head.starts_with("\xEF\xBB\xBF")) head.remove_prefix(3);
  const std::string_view first = head.substr(0, head.find('\n'));
  if (first.find('\0') != std::string_view::npos) return std::optional<Source>();
  const char separator = first.find('\t') != std::string_view::npos ? '\t' : ',';
  Table table(input, cells(first, separator));
  if (!table.has_iteration() || first.find(separator) == std::string_view::npos) {
    if (!input.forced) return std::optional<Source>();
    return fail(Errc::invalid_input, "the header names no iteration", input.path.string(),
                "One column must be called iteration, step, global_step or iter");
  }
  const auto done = for_each_line(input.path, [&](const Line& line) {
    if (line.number > 1 && !line.text.empty()) table.row(line, separator);
    return true;
  });
  if (!done) return tl::unexpected(done.error());
  return std::optional<Source>(table.finish());
}

}  // namespace qualify::evidence
