#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "panels.hpp"
#include "qualify/report/overhead.hpp"

namespace qualify::report {

using statistics::LaunchPair;
using statistics::OverheadAnalysis;
using statistics::OverheadRequest;
using statistics::PairResult;
using statistics::StepSeries;

namespace {

constexpr double kWidth = 960;
constexpr double kMargin = 24;
constexpr double kPanelHeight = 168;
constexpr std::size_t kMostPoints = 1200;  // a panel is about 400 pixels wide

struct Drawn {
  Points bulk;
  std::vector<double> beyond;  ///< x of values above the panel
};

/// Thinned by buckets, whose largest value is kept: a stall must stay visible.
Drawn drawn(const StepSeries& series, const Scale& x, const Scale& y) {
  Drawn result;
  const std::size_t bucket = series.step.size() / kMostPoints + 1;
  for (std::size_t i = 0; i < series.step.size(); i += bucket) {
    double largest = -1;
    for (std::size_t j = i; j < std::min(i + bucket, series.step.size()); ++j) {
      const double s = series.seconds[j];
      if (std::isfinite(s)) largest = std::max(largest, s);
    }
    if (largest < 0) continue;
    const double at = x(static_cast<double>(series.step[i]));
    if (largest > y.high) result.beyond.push_back(at);
    result.bulk.emplace_back(at, y(std::clamp(largest, y.low, y.high)));
  }
  return result;
}

/// From a little below the fastest steps to 1.5 times the typical step at most.
std::pair<double, double> extent(const LaunchPair& pair) {
  std::vector<double> all;
  for (const auto* series : {&pair.deterministic, &pair.nondeterministic}) {
    for (const double s : series->seconds) {
      if (std::isfinite(s) && s > 0) all.push_back(s);
    }
  }
  if (all.empty()) return {0, 1};
  std::sort(all.begin(), all.end());
  const double typical = all[all.size() / 2];
  const double low = std::max(all[all.size() / 100], 0.5 * typical);
  const double high = std::min(all[all.size() - 1 - all.size() / 50], 1.5 * typical);
  const double margin = 0.15 * (high - low) + 0.002 * typical;
  return {low - margin, high + margin};
}

void shade_exclusions(Svg& svg, const Box& plot, const Scale& x, const StepSeries& series,
                      const PairResult& result, const OverheadRequest& request) {
  // Neighbouring excluded steps are one stripe.
  const double half = static_cast<double>(result.windows.stride) / 2;
  bool open = false;
  double from = 0;
  double to = 0;
  const auto flush = [&] {
    if (!open) return;
    const double left = std::max(plot.x, x(from));
    const double right = std::min(plot.x + plot.width, x(to));
    svg.rect(left, plot.y, std::max(1.0, right - left), plot.height, "#b0b0b0", 0.35);
    open = false;
  };
  for (const std::int64_t step : series.step) {
    const bool excluded =
        statistics::excluded_by(request.calendar, step, result.windows.stride, series.step.front())
            .has_value();
    if (!excluded) {
      flush();
      continue;
    }
    if (!open) from = static_cast<double>(step) - half;
    open = true;
    to = static_cast<double>(step) + half;
  }
  flush();
}

void series_panel(Svg& svg, const Box& box, const LaunchPair& pair, const PairResult& result,
                  const OverheadRequest& request, bool placebo) {
  std::string title = pair.name;
  if (!placebo && pair.order) {
    title += *pair.order == statistics::Order::ab ? ", AB" : ", BA";
  }
  if (result.log_ratio) {
    title += fmt::format(": {:+.2f}%", 100 * std::expm1(*result.log_ratio));
  } else if (!result.faults.empty()) {
    title += ": " + result.faults.front().code;
  }
  svg.text(box.x, box.y + 12, title, "start", 13, kInk, true);

  const Box plot{box.x + 48, box.y + 20, box.width - 48, box.height - 50};
  const auto [low, high] = extent(pair);
  std::int64_t first = 0;
  std::int64_t last = 1;
  for (const auto* series : {&pair.deterministic, &pair.nondeterministic}) {
    if (series->step.empty()) continue;
    first = first == 0 ? series->step.front() : std::min(first, series->step.front());
    last = std::max(last, series->step.back());
  }
  const Scale x{static_cast<double>(first), static_cast<double>(std::max(last, first + 1)), plot.x,
                plot.x + plot.width};
  const Scale y{low, high, plot.y + plot.height, plot.y};
  svg.rect(plot.x, plot.y, plot.width, plot.height, "#f7f7f7");
  if (!pair.nondeterministic.step.empty()) {
    shade_exclusions(svg, plot, x, pair.nondeterministic, result, request);
  }
  for (const double tick : ticks(low, high, 4)) {
    svg.line(plot.x, y(tick), plot.x + plot.width, y(tick), "#e0e0e0");
    svg.text(plot.x - 6, y(tick) + 4, fmt::format("{:g}", tick), "end", 11, kFaint);
  }
  for (const double tick : ticks(x.low, x.high, 5)) {
    svg.text(x(tick), plot.y + plot.height + 14, fmt::format("{:g}", tick), "middle", 11, kFaint);
  }
  const auto draw = [&](const StepSeries& series, const char* colour) {
    const Drawn d = drawn(series, x, y);
    svg.polyline(d.bulk, colour);
    for (const double at : d.beyond) svg.triangle(at, plot.y, 4, colour);
  };
  draw(pair.nondeterministic, placebo ? kFaint : kNondeterministic);
  draw(pair.deterministic, placebo ? kInk : kDeterministic);
}

}  // namespace

std::string overhead_plot(const OverheadRequest& request, const OverheadAnalysis& analysis) {
  const std::size_t panels = analysis.pairs.size() + analysis.placebo.size();
  const std::size_t rows = (panels + 1) / 2;
  const double panel_heights = static_cast<double>(rows) * kPanelHeight;
  const double ratios = ratio_panel_height(analysis);
  const double head = 76;
  Svg svg(kWidth, head + panel_heights + ratios + 2 * kMargin);

  std::string title = std::string(statistics::name_of(analysis.verdict));
  if (analysis.estimate && analysis.interval) {
    title += fmt::format(": {} [{}, {}]", statistics::overhead_text(analysis.estimate->value),
                         statistics::overhead_text(analysis.interval->low),
                         statistics::overhead_text(analysis.interval->high));
  }
  svg.text(kMargin, 30, "Cost of determinism: " + title, "start", 18, kInk, true);
  svg.text(
      kMargin, 50,
      "policy " + request.policy.name +
          "; seconds a step over steps; grey: excluded by calendar; triangle: beyond the panel",
      "start", 12, kFaint);
  svg.rect(kMargin, 58, 12, 4, kDeterministic);
  svg.text(kMargin + 18, 64, "deterministic", "start", 12);
  svg.rect(kMargin + 120, 58, 12, 4, kNondeterministic);
  svg.text(kMargin + 138, 64, "nondeterministic", "start", 12);

  const double column = (kWidth - 3 * kMargin) / 2;
  std::size_t index = 0;
  const auto place = [&](const LaunchPair& pair, const PairResult& result, bool placebo) {
    const std::size_t row = index / 2;
    const Box box{kMargin + static_cast<double>(index % 2) * (column + kMargin),
                  head + static_cast<double>(row) * kPanelHeight, column, kPanelHeight};
    series_panel(svg, box, pair, result, request, placebo);
    ++index;
  };
  for (std::size_t i = 0; i < analysis.pairs.size(); ++i) {
    place(request.pairs[i], analysis.pairs[i], false);
  }
  for (std::size_t i = 0; i < analysis.placebo.size(); ++i) {
    place(request.placebo[i], analysis.placebo[i], true);
  }
  ratio_panel(svg, {kMargin, head + panel_heights + kMargin, kWidth - 2 * kMargin, ratios}, request,
              analysis);
  return std::move(svg).finish();
}

}  // namespace qualify::report
