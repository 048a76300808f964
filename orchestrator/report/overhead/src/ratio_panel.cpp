#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "panels.hpp"

namespace qualify::report {

using statistics::OverheadAnalysis;
using statistics::OverheadRequest;

namespace {

constexpr double kRow = 22;
constexpr double kAxis = 44;

double percent_of(double log_ratio) {
  return 100 * std::expm1(log_ratio);
}

/// Everything that must be seen, in percent.
std::pair<double, double> extent(const OverheadRequest& request, const OverheadAnalysis& analysis) {
  double low = -1;
  double high = 100 * (request.policy.fail_above - 1) + 1;
  const auto see = [&](double percent) {
    if (!std::isfinite(percent)) return;
    low = std::min(low, percent);
    high = std::max(high, percent);
  };
  for (const auto* list : {&analysis.pairs, &analysis.placebo}) {
    for (const auto& pair : *list) {
      if (pair.log_ratio) see(percent_of(*pair.log_ratio));
    }
  }
  // A huge interval must not squeeze the rest: it is cut at the edge.
  if (analysis.interval) {
    see(std::max(percent_of(analysis.interval->low), 2 * low - high));
    see(std::min(percent_of(analysis.interval->high), 2 * high - low));
  }
  const double margin = 0.05 * (high - low);
  return {low - margin, high + margin};
}

}  // namespace

double ratio_panel_height(const OverheadAnalysis& analysis) {
  const auto rows = analysis.pairs.size() + analysis.placebo.size() + 1;
  return kRow * static_cast<double>(rows) + kAxis + 30;
}

void ratio_panel(Svg& svg, const Box& box, const OverheadRequest& request,
                 const OverheadAnalysis& analysis) {
  const auto [low, high] = extent(request, analysis);
  const double left = box.x + 110;
  const double top = box.y + 26;
  const double bottom = box.y + box.height - kAxis;
  const Scale scale{low, high, left, box.x + box.width};
  const double pass = 100 * (request.policy.pass_below - 1);
  const double blocker = 100 * (request.policy.fail_above - 1);

  svg.text(box.x, box.y + 12, "Overhead of the deterministic arm, pair by pair", "start", 14, kInk,
           true);
  const auto band = [&, low = low, high = high](double from, double to, const char* colour,
                                                const char* name) {
    const double x1 = scale(std::clamp(from, low, high));
    const double x2 = scale(std::clamp(to, low, high));
    if (x2 - x1 < 1) return;
    svg.rect(x1, top, x2 - x1, bottom - top, colour, 0.16);
    if (x2 - x1 > 70) svg.text((x1 + x2) / 2, bottom + 34, name, "middle", 11, kFaint);
  };
  band(low, pass, "#2e8b57", "pass");
  band(pass, blocker, "#e0b000", "needs a decision");
  band(blocker, high, "#c0392b", "fail");
  for (const double line : {pass, blocker}) {
    svg.line(scale(line), top, scale(line), bottom, kFaint, 1, "4 3");
  }
  for (const double tick : ticks(low, high, 10)) {
    svg.line(scale(tick), bottom, scale(tick), bottom + 4, kInk);
    svg.text(scale(tick), bottom + 17, fmt::format("{:g}%", tick), "middle", 11);
  }
  svg.line(left, bottom, box.x + box.width, bottom, kInk);

  double y = top + kRow / 2;
  const auto row = [&](const std::string& name, const std::optional<double>& log_ratio,
                       const char* colour) {
    svg.text(left - 10, y + 4, name, "end", 12);
    if (log_ratio) {
      svg.circle(scale(percent_of(*log_ratio)), y, 4, colour);
    } else {
      svg.text(left + 8, y + 4, "not usable", "start", 11, kFaint);
    }
    y += kRow;
  };
  for (const auto& pair : analysis.pairs) {
    const char* order = !pair.order ? "" : *pair.order == statistics::Order::ab ? " AB" : " BA";
    row(pair.name + order, pair.log_ratio, kDeterministic);
  }
  for (const auto& pair : analysis.placebo) row(pair.name, pair.log_ratio, kFaint);

  svg.text(left - 10, y + 4, "estimate, 95%", "end", 12, kInk, true);
  if (!analysis.estimate || !analysis.interval) {
    svg.text(left + 8, y + 4, "too few usable pairs", "start", 11, kFaint);
    return;
  }
  const double from = scale(std::clamp(percent_of(analysis.interval->low), low, high));
  const double to = scale(std::clamp(percent_of(analysis.interval->high), low, high));
  svg.line(from, y, to, y, kInk, 3);
  for (const double end : {from, to}) svg.line(end, y - 6, end, y + 6, kInk, 2);
  svg.circle(scale(percent_of(analysis.estimate->value)), y, 5, kInk);
}

}  // namespace qualify::report
