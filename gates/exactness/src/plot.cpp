#include "qualify/exactness/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "qualify/base/text.hpp"

namespace qualify::exactness {

namespace {

struct Point {
  double x = 0;
  double y = 0;
};

constexpr double kLeft = 90;
constexpr double kRight = 870;
constexpr double kTop = 60;
constexpr double kMiddle = 340;  ///< lower edge of the curves
constexpr double kSecond = 400;  ///< upper edge of the distances
constexpr double kBottom = 540;
constexpr std::size_t kMarks = 1000;  ///< stretches; two marks each
constexpr const char* kColourA = "#1f77b4";
constexpr const char* kColourB = "#d62728";

/// Takes points in order and keeps the lowest and highest of each stretch.
class Thinned {
 public:
  explicit Thinned(std::size_t expected) : expected_(expected) {}
  void add(const Point& point) {
    if (expected_ <= 2 * kMarks) {
      kept_.push_back(point);
      return;
    }
    const std::size_t stretch = std::min(seen_++ * kMarks / expected_, kMarks - 1);
    if (stretch != stretch_) flush();
    stretch_ = stretch;
    if (!low_ || point.y < low_->y) low_ = point;
    if (!high_ || point.y >= high_->y) high_ = point;
  }
  std::vector<Point> finish() {
    flush();
    return std::move(kept_);
  }

 private:
  void flush() {
    if (low_ && high_) {
      const bool low_first = low_->x <= high_->x;
      kept_.push_back(low_first ? *low_ : *high_);
      if (low_->x != high_->x) kept_.push_back(low_first ? *high_ : *low_);
    }
    low_.reset();
    high_.reset();
  }
  std::size_t expected_;
  std::size_t seen_ = 0;
  std::size_t stretch_ = 0;
  std::optional<Point> low_;
  std::optional<Point> high_;
  std::vector<Point> kept_;
};

struct Axis {
  double low = 0;
  double high = 1;
  double at_low = 0;  ///< pixels
  double at_high = 0;
  [[nodiscard]] double at(double value) const {
    return at_low + (value - low) / (high - low) * (at_high - at_low);
  }
};

Axis axis(double low, double high, double at_low, double at_high) {
  if (!(low <= high)) low = 0, high = 1;
  if (low == high) {
    const double room = low == 0 ? 1 : std::fabs(low) * 0.05;
    low -= room;
    high += room;
  }
  return {low, high, at_low, at_high};
}

/// 1, 2 or 5 times a power of ten, for about six marks.
double step_of(double span) {
  const double raw = span / 6;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power) return factor * power;
  }
  return 10 * power;
}

class Picture {
 public:
  void text(double x, double y, const std::string& what, const char* anchor = "start",
            const char* colour = "#333", int size = 12) {
    svg_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\" "
        "font-size=\"{}\">{}</text>\n",
        x, y, anchor, colour, size, escape_xml(what));
  }
  void line(double x1, double y1, double x2, double y2, const char* colour) {
    svg_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1,
        x2, y2, colour);
  }
  void curve(const std::vector<Point>& points, const Axis& x, const Axis& y, const char* colour,
             const char* dashes) {
    if (points.size() == 1) return dots(points, x, y, colour);
    std::string path;
    for (const Point& point : points) {
      path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", x.at(point.x), y.at(point.y));
    }
    if (path.empty()) return;
    svg_ += fmt::format(
        "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" stroke-dasharray=\"{}\" "
        "points=\"{}\"/>\n",
        colour, dashes, path);
  }
  void dots(const std::vector<Point>& points, const Axis& x, const Axis& y, const char* colour) {
    for (const Point& point : points) {
      svg_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\"/>\n",
                          x.at(point.x), y.at(point.y), colour);
    }
  }
  void frame(double top, double bottom) {
    svg_ += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888\"/>\n",
        kLeft, top, kRight - kLeft, bottom - top);
  }
  [[nodiscard]] std::string finish() const {
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"900\" height=\"600\" "
           "viewBox=\"0 0 900 600\" font-family=\"sans-serif\">\n"
           "<rect width=\"900\" height=\"600\" fill=\"white\"/>\n" +
           svg_ + "</svg>\n";
  }

 private:
  std::string svg_;
};

struct Data {
  std::vector<Point> a;
  std::vector<Point> b;
  std::vector<Point> distance;  ///< log10
  bool in_ulps = true;
  std::size_t beyond = 0;    ///< differing values without a distance: NaN, infinity, digests
  std::size_t left_out = 0;  ///< values that no axis has: NaN, infinity, digests
};

const evidence::Series* find(const evidence::RunMetrics& run, const std::string& metric) {
  const auto found = run.series.find(metric);
  return found == run.series.end() ? nullptr : &found->second;
}

bool inside(std::int64_t iteration, const Options& options) {
  return (!options.from_iteration || iteration >= *options.from_iteration) &&
         (!options.to_iteration || iteration <= *options.to_iteration);
}

/// The finite values of one run.
std::vector<Point> curve_of(const evidence::Series* series, const Options& options,
                            std::size_t& left_out) {
  if (series == nullptr) return {};
  Thinned points(series->values.size());
  for (const auto& [iteration, scalar] : series->values) {
    if (!inside(iteration, options)) continue;
    if (std::isfinite(scalar.value()))
      points.add({static_cast<double>(iteration), scalar.value()});
    else
      ++left_out;
  }
  return points.finish();
}

/// Calls each(iteration, a, b) where the two differ.
template <class Each>
void for_differences(const evidence::Values& a, const evidence::Values& b, const Options& options,
                     Each&& each) {
  const auto end_a = a.end();
  const auto end_b = b.end();
  auto i = a.begin();
  auto k = b.begin();
  while (i != end_a && k != end_b) {
    if (i->first < k->first) {
      ++i;
    } else if (k->first < i->first) {
      ++k;
    } else {
      if (inside(i->first, options) && compare_scalars(i->second, k->second) == Pair::differs)
        each(i->first, i->second, k->second);
      ++i;
      ++k;
    }
  }
}

Data collect(const evidence::Series* a, const evidence::Series* b, const Options& options) {
  Data data;
  data.a = curve_of(a, options, data.left_out);
  data.b = curve_of(b, options, data.left_out);
  if (a == nullptr || b == nullptr) return data;
  std::size_t count = 0;
  for_differences(a->values, b->values, options,
                  [&](std::int64_t, const auto& left, const auto& right) {
                    ++count;
                    const bool finite = std::isfinite(left.value()) && std::isfinite(right.value());
                    if (finite && !ulps_between(left, right)) data.in_ulps = false;
                  });
  Thinned distances(count);
  for_differences(a->values, b->values, options,
                  [&](std::int64_t iteration, const auto& left, const auto& right) {
                    const auto ulps = ulps_between(left, right);
                    const double distance = data.in_ulps && ulps
                                                ? static_cast<double>(*ulps)
                                                : std::fabs(left.value() - right.value());
                    if (std::isfinite(distance) && distance > 0)
                      distances.add({static_cast<double>(iteration), std::log10(distance)});
                    else
                      ++data.beyond;
                  });
  data.distance = distances.finish();
  return data;
}

Axis span_of(const std::vector<Point>& a, const std::vector<Point>& b, double Point::*side,
             double at_low, double at_high) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const auto* points : {&a, &b}) {
    for (const Point& point : *points) {
      low = std::min(low, point.*side);
      high = std::max(high, point.*side);
    }
  }
  return axis(low, high, at_low, at_high);
}

void ticks_x(Picture& picture, const Axis& x, double bottom) {
  const double step = std::max(1.0, step_of(x.high - x.low));
  for (double at = std::ceil(x.low / step) * step; at <= x.high; at += step) {
    picture.line(x.at(at), bottom, x.at(at), bottom + 5, "#888");
    picture.text(x.at(at), bottom + 18, fmt::format("{:.0f}", at), "middle");
  }
}

}  // namespace

namespace {

/// A path's end says more than its beginning, and both labels must fit on one line.
std::string end_of(const std::string& label) {
  constexpr std::size_t kMost = 50;
  if (label.size() <= kMost) return label;
  std::size_t from = label.size() - kMost;
  while (from < label.size() && (static_cast<unsigned char>(label[from]) & 0xC0U) == 0x80U) ++from;
  return "…" + label.substr(from);
}

}  // namespace

std::string metric_to_plot(const Comparison& comparison) {
  if (const auto* first = comparison.first_divergence()) return first->metric;
  for (const auto& metric : comparison.metrics) {
    if (metric.metric == "lm loss") return metric.metric;
  }
  return comparison.metrics.empty() ? std::string() : comparison.metrics.front().metric;
}

Result<std::string> plot_svg(const evidence::RunMetrics& a, const evidence::RunMetrics& b,
                             const std::string& metric, const std::string& label_a,
                             const std::string& label_b, const Options& options) {
  const auto* in_a = find(a, metric);
  const auto* in_b = find(b, metric);
  if (in_a == nullptr && in_b == nullptr) {
    return fail(Errc::not_found, "neither run has the metric \"" + metric + "\"");
  }
  const Data data = collect(in_a, in_b, options);
  Picture picture;
  picture.text(kLeft, 24, metric, "start", "#111", 16);
  picture.text(kLeft, 46, "A  " + end_of(label_a), "start", kColourA);
  picture.text((kLeft + kRight) / 2, 46, "B  " + end_of(label_b), "start", kColourB);

  const Axis x = span_of(data.a, data.b, &Point::x, kLeft, kRight);
  const Axis y = span_of(data.a, data.b, &Point::y, kMiddle - 10, kTop + 10);
  const double step = step_of(y.high - y.low);
  for (double at = std::ceil(y.low / step) * step; at <= y.high; at += step) {
    picture.line(kLeft, y.at(at), kRight, y.at(at), "#eee");
    picture.text(kLeft - 8, y.at(at) + 4,
                 fmt::format("{:.5g}", std::fabs(at) < step / 1e6 ? 0.0 : at), "end");
  }
  picture.frame(kTop, kMiddle);
  picture.curve(data.a, x, y, kColourA, "none");
  picture.curve(data.b, x, y, kColourB, "6 4");
  ticks_x(picture, x, kMiddle);

  double least = data.in_ulps || data.distance.empty() ? 0 : data.distance.front().y;
  double most = least;
  for (const Point& point : data.distance) {
    most = std::max(most, point.y);
    least = std::min(least, point.y);
  }
  const double floor = std::floor(least);
  const Axis distance = axis(floor, std::max(floor + 1, std::ceil(most)), kBottom - 8, kSecond + 8);
  const double decades = std::max(1.0, std::ceil((distance.high - distance.low) / 5));
  for (double at = distance.low; at <= distance.high; at += decades) {
    picture.line(kLeft, distance.at(at), kRight, distance.at(at), "#eee");
    picture.text(
        kLeft - 8, distance.at(at) + 4,
        std::fabs(at) < 5 ? fmt::format("{:g}", std::pow(10, at)) : fmt::format("1e{:.0f}", at),
        "end");
  }
  picture.text(kLeft, kSecond - 8,
               data.in_ulps ? "distance in ulps (log scale); no mark = no difference"
                            : "|A - B| (log scale); no mark = no difference");
  picture.frame(kSecond, kBottom);
  picture.dots(data.distance, x, distance, "#333");
  if (data.distance.empty() && data.beyond == 0) {
    picture.text((kLeft + kRight) / 2, (kSecond + kBottom) / 2, "no iteration differs", "middle",
                 "#777", 14);
  }
  ticks_x(picture, x, kBottom);
  picture.text((kLeft + kRight) / 2, kBottom + 38, "iteration", "middle");
  if (data.beyond + data.left_out > 0) {
    picture.text(
        kRight, kBottom + 52,
        fmt::format(
            "{} values (NaN, infinite, digests) are not drawn; {} differences have no distance",
            data.left_out, data.beyond),
        "end", "#777", 11);
  }
  return picture.finish();
}

}  // namespace qualify::exactness
