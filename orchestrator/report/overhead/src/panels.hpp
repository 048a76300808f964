#pragma once

#include "qualify/statistics/overhead.hpp"
#include "svg.hpp"

namespace qualify::report {

/// A rectangle of the page, pixels.
struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

/// Every pair's overhead, the placebo, and the estimate with its interval over the policy's bands.
void ratio_panel(Svg& svg, const Box& box, const statistics::OverheadRequest& request,
                 const statistics::OverheadAnalysis& analysis);
[[nodiscard]] double ratio_panel_height(const statistics::OverheadAnalysis& analysis);

}  // namespace qualify::report
