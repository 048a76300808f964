#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "qualify/base/error.hpp"

/// Statistics of one series of step times in the order in which they were measured.
namespace qualify::statistics {

/// Autocorrelations at lags 0..max_lag with divisor n (R: acf); needs max_lag + 1 values that are
/// not all equal.
[[nodiscard]] Result<std::vector<double>> autocorrelation(std::span<const double> values,
                                                          std::size_t max_lag);

/// n / (1 + 2 sum rho_k) with Geyer's initial positive sequence: pairs rho_{2m} + rho_{2m+1} are
/// summed while positive. In [1, n]; n for a constant series. Needs 4 values.
/// Source: Geyer 1992, Practical Markov Chain Monte Carlo, section 3.3.
[[nodiscard]] Result<double> effective_sample_size(std::span<const double> values);

/// Where the initial transient ends by MSER-5.
struct Transient {
  std::size_t batches = 0;    ///< m: means of 5 steps; a rest of fewer than 5 is left out
  std::size_t discarded = 0;  ///< d*: batches before steady state
  bool steady = false;        ///< d* <= m / 2
  double mean_before = 0;     ///< mean of the discarded batches (0 where d* = 0)
  double mean_after = 0;      ///< mean of the kept ones
};

/// d* = argmin over d of (m - d)^-2 sum_{j > d} (b_j - mean_{> d})^2 on means b of 5 values; the
/// last 2 batches are never a candidate (their variance says nothing). Needs 20 values.
/// Source: White, Cobb & Spratt 2000, A comparison of five steady-state truncation heuristics.
[[nodiscard]] Result<Transient> mser5(std::span<const double> values);

/// One break in the mean of a series.
struct MeanShift {
  std::size_t at = 0;   ///< number of values before the break, 1-based index of the last of them
  std::size_t low = 0;  ///< 95% interval of `at`, may reach beyond the series
  std::size_t high = 0;
  bool interval_known = false;  ///< false when the shift is too small for an interval
  double before = 0;            ///< means of the two segments
  double after = 0;
  double rss_none = 0;  ///< residual sums of squares without and with the break
  double rss_one = 0;
  double bic_none = 0;
  double bic_one = 0;  ///< counts the break as a parameter
  [[nodiscard]] bool preferred() const { return bic_one < bic_none; }
};

/// Least-squares break with at least max(2, floor(0.15 n)) values on each side; BIC =
/// n (ln 2 pi + ln(RSS / n) + 1) + p ln n with p = 2 (no break) and 4; interval by Bai's
/// asymptotic distribution with one variance a side. Needs 10 values that are not all equal.
/// Source: Bai 1997, Estimation of a change point in multiple regression models; Bai & Perron
/// 2003. Known answer: Nile, break 28 [25, 32].
[[nodiscard]] Result<MeanShift> mean_shift(std::span<const double> values);

}  // namespace qualify::statistics
