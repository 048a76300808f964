// A second opinion on 1,000 random inputs, where R is installed (r-base-core).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "qualify/statistics/exact.hpp"
#include "qualify/statistics/location.hpp"
#include "qualify/statistics/paired.hpp"
#include "qualify/statistics/series.hpp"
#include "support/temp_folder.hpp"

namespace qualify::statistics {
namespace {

using Values = std::vector<double>;

struct Case {
  Values x;
  Values y;
};

std::vector<double> ours(const Case& c) {
  Values d;
  for (std::size_t i = 0; i < c.x.size(); ++i) d.push_back(c.x[i] - c.y[i]);
  const std::size_t half = d.size() / 2;
  const auto t = paired_t(d).value();
  const auto s = signed_rank(d, 0.95).value();
  const auto rho = autocorrelation(c.x, 2).value();
  const auto cross = crossover(std::span(d).first(half), std::span(d).subspan(half)).value();
  return {median(c.x).value(),
          trimmed_mean(c.x, 0.2).value(),
          standard_deviation(c.x).value(),
          hodges_lehmann(d).value(),
          hodges_lehmann_shift(c.x, c.y).value(),
          t.t(),
          t.two_sided_p(),
          t.interval(0.95).low,
          t.interval(0.95).high,
          t.lower_bound(0.05),
          t.upper_bound(0.05),
          sign_flip_p(d).value(),
          s.v,
          s.p,
          s.interval.low,
          s.interval.high,
          rank_sum_p(c.x, c.y).value(),
          rho[1],
          rho[2],
          cross.effect.value,
          cross.effect.standard_error};
}

TEST(AgainstR, AThousandRandomInputsAgree) {
  if (std::system("command -v Rscript > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "Rscript is not installed (Debian package r-base-core)";
  }
  const test::TempFolder folder;
  std::mt19937_64 random(20221110);
  std::uniform_int_distribution<int> size(4, 9);
  std::lognormal_distribution<double> time(0, 0.3);
  std::vector<Case> cases(1000);
  std::ofstream input(folder.path() / "input");
  input.precision(17);
  for (Case& c : cases) {
    const int n = size(random);
    for (int i = 0; i < n; ++i) c.x.push_back(time(random));
    for (int i = 0; i < n; ++i) c.y.push_back(time(random));
    for (const double v : c.x) input << v << ' ';
    input << '|';
    for (const double v : c.y) input << ' ' << v;
    input << '\n';
  }
  input.close();
  const std::string command = "Rscript --vanilla '" QUALIFY_R_SCRIPT "' < '" +
                              (folder.path() / "input").string() + "' > '" +
                              (folder.path() / "output").string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::ifstream output(folder.path() / "output");
  std::string line;
  std::size_t row = 0;
  while (std::getline(output, line)) {
    ASSERT_LT(row, cases.size());
    std::istringstream fields(line);
    const auto expected = ours(cases[row]);
    for (std::size_t column = 0; column < expected.size(); ++column) {
      double value = NAN;
      ASSERT_TRUE(fields >> value) << "row " << row << ": " << line;
      EXPECT_NEAR(expected[column], value, 1e-9 * std::fmax(1.0, std::fabs(value)))
          << "row " << row << ", column " << column;
    }
    ++row;
  }
  EXPECT_EQ(row, cases.size());
}

}  // namespace
}  // namespace qualify::statistics
