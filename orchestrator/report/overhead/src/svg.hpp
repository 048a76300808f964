#pragma once

#include <string>
#include <utility>
#include <vector>

namespace qualify::report {

using Points = std::vector<std::pair<double, double>>;

inline constexpr const char* kDeterministic = "#1f6fb4";
inline constexpr const char* kNondeterministic = "#d9760f";
inline constexpr const char* kInk = "#222222";
inline constexpr const char* kFaint = "#8a8a8a";

/// Writes SVG elements, in pixels, with short numbers and escaped text.
class Svg {
 public:
  Svg(double width, double height);
  void rect(double x, double y, double width, double height, const std::string& fill,
            double opacity = 1);
  void line(double x1, double y1, double x2, double y2, const std::string& stroke,
            double thickness = 1, const std::string& dashes = {});
  void polyline(const Points& points, const std::string& stroke);
  void circle(double x, double y, double radius, const std::string& fill);
  void triangle(double x, double y, double size, const std::string& fill);
  /// anchor: "start", "middle" or "end".
  void text(double x, double y, const std::string& text, const std::string& anchor = "start",
            double size = 12, const std::string& fill = kInk, bool bold = false);
  [[nodiscard]] std::string finish() &&;

 private:
  std::string body_;
};

/// A linear scale from values to pixels.
struct Scale {
  double low = 0;
  double high = 1;
  double from = 0;  ///< pixel of low
  double to = 1;    ///< pixel of high
  [[nodiscard]] double operator()(double value) const {
    return from + (value - low) / (high - low) * (to - from);
  }
};

/// About `count` round values in [low, high].
[[nodiscard]] std::vector<double> ticks(double low, double high, int count);

}  // namespace qualify::report
