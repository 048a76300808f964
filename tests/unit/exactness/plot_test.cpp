#include "qualify/exactness/plot.hpp"

#include <gmock/gmock.h>

namespace qualify::exactness {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::filesystem::path kData = QUALIFY_TEST_DATA;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Plot, EveryDifferingIterationHasOneMark) {
  const auto a = evidence::read_metrics(kData / "h200/a").value();
  const auto c = evidence::read_metrics(kData / "h200/c").value();
  const auto comparison = compare(a, c);
  const auto svg = plot_svg(a, c, "lm loss", "a", "c & <d>").value();
  for (const auto& metric : comparison.metrics) {
    if (metric.metric == "lm loss") {
      EXPECT_EQ(count(svg, "<circle"), metric.differing);
    }
  }
  EXPECT_EQ(count(svg, "<polyline"), 2U);
  EXPECT_THAT(svg, HasSubstr("ulps"));
  EXPECT_THAT(svg, HasSubstr("c &amp; &lt;d&gt;"));
}

TEST(Plot, EqualRunsSaySo) {
  const auto a = evidence::read_metrics(kData / "h200/a").value();
  const auto b = evidence::read_metrics(kData / "h200/b").value();
  const auto svg = plot_svg(a, b, "lm loss", "a", "b").value();
  EXPECT_THAT(svg, HasSubstr("no iteration differs"));
  EXPECT_THAT(svg, Not(HasSubstr("<circle")));
  EXPECT_EQ(metric_to_plot(compare(a, b)), "lm loss");
  EXPECT_FALSE(plot_svg(a, b, "no such metric", "a", "b"));
}

}  // namespace
}  // namespace qualify::exactness
