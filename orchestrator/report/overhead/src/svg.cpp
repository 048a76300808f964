#include "svg.hpp"

#include <fmt/format.h>

#include <cmath>

#include "qualify/base/text.hpp"

namespace qualify::report {

Svg::Svg(double width, double height) {
  body_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"Helvetica, Arial, sans-serif\">\n"
      "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#ffffff\"/>\n",
      width, height);
}

void Svg::rect(double x, double y, double width, double height, const std::string& fill,
               double opacity) {
  body_ += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" "
      "fill-opacity=\"{:.2f}\"/>\n",
      x, y, width, height, fill, opacity);
}

void Svg::line(double x1, double y1, double x2, double y2, const std::string& stroke,
               double thickness, const std::string& dashes) {
  body_ += fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
      "stroke-width=\"{:.1f}\"{}/>\n",
      x1, y1, x2, y2, stroke, thickness,
      dashes.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dashes));
}

void Svg::polyline(const Points& points, const std::string& stroke) {
  if (points.empty()) return;
  body_ += "<polyline fill=\"none\" stroke-width=\"1.2\" stroke-linejoin=\"round\" stroke=\"" +
           stroke + "\" points=\"";
  for (const auto& [x, y] : points) body_ += fmt::format("{:.1f},{:.1f} ", x, y);
  body_.back() = '"';
  body_ += "/>\n";
}

void Svg::circle(double x, double y, double radius, const std::string& fill) {
  body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\"/>\n", x, y,
                       radius, fill);
}

void Svg::triangle(double x, double y, double size, const std::string& fill) {
  body_ += fmt::format("<path d=\"M{:.1f} {:.1f} l{:.1f} {:.1f} h{:.1f} z\" fill=\"{}\"/>\n", x, y,
                       size, 1.6 * size, -2 * size, fill);
}

void Svg::text(double x, double y, const std::string& text, const std::string& anchor, double size,
               const std::string& fill, bool bold) {
  body_ += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{:.0f}\" fill=\"{}\"{}>{}"
      "</text>\n",
      x, y, anchor, size, fill, bold ? " font-weight=\"bold\"" : "", escape_xml(text));
}

std::string Svg::finish() && {
  return std::move(body_) + "</svg>\n";
}

std::vector<double> ticks(double low, double high, int count) {
  std::vector<double> values;
  const double raw = (high - low) / count;
  if (!(raw > 0) || !std::isfinite(raw)) return values;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw) {
      step = factor * power;
      break;
    }
  }
  for (double v = std::ceil(low / step) * step; v <= high + 1e-9 * step; v += step) {
    values.push_back(std::fabs(v) < 1e-9 * step ? 0 : v);
  }
  return values;
}

}  // namespace qualify::report
