#pragma once

#include <string>

#include "qualify/statistics/overhead.hpp"

/// The performance analysis for people: a page of text and a picture. Pure; any thread. Neither
/// computes a verdict.
namespace qualify::report {

/// Verdict with its reasons, estimate, checks, one line a pair, exclusions and limits; lines of at
/// most `width` columns (at least 60), each ended by a newline. Names are made safe to print.
[[nodiscard]] std::string overhead_text(const statistics::OverheadAnalysis& analysis, int width);

/// A self-contained SVG: the step series of both arms, pair by pair, exclusions shaded, stalls at
/// the edge; below them every pair's ratio, the estimate with its interval and the policy's bands.
[[nodiscard]] std::string overhead_plot(const statistics::OverheadRequest& request,
                                        const statistics::OverheadAnalysis& analysis);

}  // namespace qualify::report
