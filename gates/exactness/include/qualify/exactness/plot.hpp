#pragma once

#include <string>

#include "qualify/exactness/compare.hpp"

namespace qualify::exactness {

/// A picture of one metric of both runs (SVG 1.1, 900 x 600, no scripts, no outside references):
/// above the two curves, below their distance on a logarithmic axis, in ulps where both hold bits
/// of one type, otherwise as |a - b|. Iterations that do not differ have no mark there. At most
/// about 2,000 marks a curve are drawn; of a stretch its lowest and highest.
/// `label_a` and `label_b` name the runs. Errors: not_found (the metric is in neither run).
[[nodiscard]] Result<std::string> plot_svg(const evidence::RunMetrics& a,
                                           const evidence::RunMetrics& b, const std::string& metric,
                                           const std::string& label_a, const std::string& label_b,
                                           const Options& options = {});

/// The metric that is worth a picture: the one that differs first, else "lm loss", else the first.
[[nodiscard]] std::string metric_to_plot(const Comparison& comparison);

}  // namespace qualify::exactness
