// Prints the calibration and power tables of docs/gates/performance.md.
// Usage: qualify_calibration [experiments a row, default 2000]. Seeds are fixed.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/step_simulation.hpp"

using namespace qualify;

namespace {

void header(const char* first) {
  std::printf(
      "\n| %s | coverage of 95%% | pass | needs-decision | fail | inconclusive | of it by fault "
      "| of these machine moved |\n",
      first);
  std::printf("|---|---|---|---|---|---|---|---|\n");
}

void row(const std::string& name, const test::Tally& t) {
  const auto percent = [&](int n) { return 100 * t.rate(n); };
  std::printf("| %s | %.1f%% | %.1f%% | %.1f%% | %.1f%% | %.1f%% | %.1f%% | %.1f%% |\n",
              name.c_str(), 100 * t.coverage(), percent(t.pass), percent(t.needs_decision),
              percent(t.fail), percent(t.inconclusive), percent(t.faulty), percent(t.moved));
  std::fflush(stdout);
}

template <class Make>
test::Tally many(int experiments, double truth, std::uint64_t seed, const Make& make) {
  std::mt19937_64 random(seed);
  test::Tally tally;
  for (int i = 0; i < experiments; ++i) tally.add(statistics::analyse(make(random)), truth);
  return tally;
}

}  // namespace

int main(int argc, char** argv) {
  const int experiments = argc > 1 ? std::atoi(argv[1]) : 2000;
  const auto policy = statistics::decision_policy("change-overhead").value();

  std::vector<test::Scenario> noise;
  for (const double rho : {0.0, 0.3, 0.6, 0.9}) {
    test::Scenario s;
    s.rho = rho;
    char name[64];
    std::snprintf(name, sizeof name, "AR(1), rho %.1f, no effect", rho);
    s.name = name;
    noise.push_back(s);
  }
  for (const int pairs : {4, 6}) {
    for (const double overhead : {0.0, 0.003, 0.03, 0.06, 0.09}) {
      test::Scenario s;
      s.rho = 0.6;
      s.stall_rate = 0.02;
      s.drift = 0.0005;
      s.period = 0.001;
      s.pairs = pairs;
      s.overhead = overhead;
      char name[96];
      std::snprintf(name, sizeof name, "%d pairs, rho 0.6, stalls, drift, period; effect %.1f%%",
                    pairs, 100 * overhead);
      s.name = name;
      noise.push_back(s);
    }
  }
  std::printf("change-overhead, %d experiments a row\n", experiments);
  header("simulated");
  std::uint64_t seed = 1;
  for (const auto& s : noise) {
    row(s.name, many(experiments, s.overhead, seed++,
                     [&](std::mt19937_64& random) { return test::simulate(s, random, policy); }));
  }

  header("real series, neighbouring windows");
  for (const char* name : {"dsv3_proxy_gb200_release", "gpt3_weekly_tp2pp2_gb200"}) {
    const auto values = test::real_step_times(name, 20);
    for (const double overhead : {0.0, 0.003, 0.03, 0.09}) {
      for (const int pairs : {4, 6}) {
        test::Scenario s;
        s.pairs = pairs;
        s.overhead = overhead;
        s.steps = 30;
        char label[128];
        std::snprintf(label, sizeof label, "%s, %d pairs, effect %.1f%%", name, pairs,
                      100 * overhead);
        row(label, many(experiments / 4, overhead, seed++, [&](std::mt19937_64& random) {
              return test::real_windows(values, s, random, policy);
            }));
      }
    }
  }

  std::printf("\nPairs for the right verdict with probability 0.8 (one look, 5%%):\n\n");
  std::printf(
      "| overhead \\ noise of a pair | verdict | 0.1%% | 0.2%% | 0.5%% | 1.0%% | 2.0%% |\n");
  std::printf("|---|---|---|---|---|---|---|\n");
  std::mt19937_64 random(1);
  for (const double overhead : {0.0, 0.003, 0.005, 0.02, 0.03, 0.05, 0.06, 0.08, 0.09, 0.12}) {
    const auto right = overhead < 0.01   ? statistics::OverheadVerdict::pass
                       : overhead > 0.07 ? statistics::OverheadVerdict::fail
                                         : statistics::OverheadVerdict::needs_decision;
    std::printf("| %.1f%% | %s |", 100 * overhead, statistics::name_of(right));
    for (const double deviation : {0.001, 0.002, 0.005, 0.01, 0.02}) {
      int k = 4;
      while (k <= 100 && test::chance_of(right, policy, overhead, deviation, 0.05, k, experiments,
                                         random) < 0.8) {
        k += 2;
      }
      std::printf(k <= 100 ? " %d |" : " > 100 |", k);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  return 0;
}
