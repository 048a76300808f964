#include "qualify/statistics/exact.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "qualify/statistics/location.hpp"

namespace qualify::statistics {

namespace {

/// P(V <= v) for v = 0..n(n+1)/2 of Wilcoxon's signed-rank statistic, by its generating function.
std::vector<double> signed_rank_cdf(std::size_t n) {
  std::vector<double> mass(n * (n + 1) / 2 + 1, 0.0);
  mass[0] = 1;
  std::size_t top = 0;
  for (std::size_t rank = 1; rank <= n; ++rank) {
    top += rank;
    for (std::size_t v = top + 1; v-- > 0;) {
      mass[v] = (mass[v] + (v >= rank ? mass[v - rank] : 0)) / 2;
    }
  }
  std::partial_sum(mass.begin(), mass.end(), mass.begin());
  return mass;
}

/// P(U <= u), u = 0..n m, by Mann and Whitney's recursion on the number of arrangements.
std::vector<double> rank_sum_cdf(std::size_t n, std::size_t m) {
  // ways[i][u]: i values of x among the j of y seen so far; probabilities to stay in range
  std::vector<std::vector<double>> ways(n + 1, std::vector<double>(n * m + 1, 0.0));
  for (auto& row : ways) row[0] = 1;
  for (std::size_t j = 1; j <= m; ++j) {
    for (std::size_t i = 1; i <= n; ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(i + j);
      for (std::size_t u = n * m + 1; u-- > 0;) {
        // the largest value is an x (it beats all j of y) or a y
        const double from_x = u >= j ? ways[i - 1][u - j] : 0;
        ways[i][u] = share * from_x + (1 - share) * ways[i][u];
      }
    }
  }
  auto cdf = ways[n];
  std::partial_sum(cdf.begin(), cdf.end(), cdf.begin());
  return cdf;
}

}  // namespace

Result<double> sign_flip_p(std::span<const double> differences) {
  if (auto ok = check_sample(differences, 1, "a sign-flip test"); !ok) {
    return tl::unexpected(ok.error());
  }
  const std::size_t k = differences.size();
  if (k > 20) return fail(Errc::invalid_input, "the exact sign-flip test takes at most 20 pairs");
  double magnitude = 0;
  double observed = 0;
  for (const double d : differences) {
    magnitude += std::fabs(d);
    observed += d;
  }
  // Flips that tie with the observed one must count: allow the rounding of k additions.
  const double threshold = std::fabs(observed) - 1e-12 * magnitude;
  std::uint64_t extreme = 0;
  const std::uint64_t flips = 1ULL << k;
  for (std::uint64_t flip = 0; flip < flips; ++flip) {
    double sum = 0;
    for (std::size_t i = 0; i < k; ++i) {
      sum += ((flip >> i) & 1U) != 0 ? -differences[i] : differences[i];
    }
    if (std::fabs(sum) >= threshold) ++extreme;
  }
  return static_cast<double>(extreme) / static_cast<double>(flips);
}

Result<SignedRank> signed_rank(std::span<const double> differences, double confidence) {
  if (auto ok = check_sample(differences, 1, "a signed-rank test"); !ok) {
    return tl::unexpected(ok.error());
  }
  const std::size_t n = differences.size();
  if (n > 50) return fail(Errc::invalid_input, "the exact signed-rank test takes at most 50 pairs");
  std::vector<double> by_size(differences.begin(), differences.end());
  std::sort(by_size.begin(), by_size.end(),
            [](double a, double b) { return std::fabs(a) < std::fabs(b); });
  SignedRank result;
  for (std::size_t i = 0; i < n; ++i) {
    if (by_size[i] == 0 || (i > 0 && std::fabs(by_size[i]) == std::fabs(by_size[i - 1]))) {
      return fail(Errc::invalid_input, "zeros or ties: the exact signed-rank test does not apply");
    }
    if (by_size[i] > 0) result.v += static_cast<double>(i + 1);
  }
  const auto cdf = signed_rank_cdf(n);
  const std::size_t top = cdf.size() - 1;
  const auto v = static_cast<std::size_t>(result.v);
  const double upper = v == 0 ? 1 : 1 - cdf[v - 1];
  result.p = std::min(1.0, 2 * std::min(cdf[v], upper));
  result.pseudo_median = hodges_lehmann(differences).value();

  std::vector<double> walsh;
  walsh.reserve(top);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i; j < n; ++j) walsh.push_back((differences[i] + differences[j]) / 2);
  }
  std::sort(walsh.begin(), walsh.end());
  const double tail = (1 - confidence) / 2;
  const auto quantile = static_cast<std::size_t>(
      std::lower_bound(cdf.begin(), cdf.end(), tail * (1 - 64 * 2.220446e-16)) - cdf.begin());
  const std::size_t rank = std::max<std::size_t>(quantile, 1);
  result.interval = {walsh[rank - 1], walsh[top - rank]};
  result.achieved = 1 - 2 * cdf[rank - 1];
  return result;
}

Result<double> rank_sum_p(std::span<const double> x, std::span<const double> y) {
  for (const auto sample : {x, y}) {
    if (auto ok = check_sample(sample, 1, "a rank-sum test"); !ok) {
      return tl::unexpected(ok.error());
    }
  }
  if (x.size() * y.size() > 2500) {
    return fail(Errc::invalid_input, "the exact rank-sum test takes at most 2500 pairs of values");
  }
  std::size_t u = 0;
  for (const double a : x) {
    for (const double b : y) {
      if (a == b) {
        return fail(Errc::invalid_input, "ties: the exact rank-sum test does not apply");
      }
      if (a > b) ++u;
    }
  }
  const auto cdf = rank_sum_cdf(x.size(), y.size());
  const double upper = u == 0 ? 1 : 1 - cdf[u - 1];
  return std::min(1.0, 2 * std::min(cdf[u], upper));
}

double range_coverage_of_median(int k) {
  return 1 - std::ldexp(1.0, 1 - k);
}

}  // namespace qualify::statistics
