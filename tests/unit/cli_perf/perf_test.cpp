// `qualify perf` on plain files, from argv to exit code.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app.hpp"
#include "support/fake_clock.hpp"
#include "support/step_simulation.hpp"
#include "support/temp_folder.hpp"

namespace qualify::cli {
namespace {

struct Result {
  int exit = 0;
  std::string out;
  std::string err;
};

class Perf : public ::testing::Test {
 protected:
  void write(const std::string& name, const statistics::StepSeries& series, double factor = 1) {
    std::ofstream file(folder_ / name);
    file.precision(17);
    file << "step,iteration_time_s\n";
    for (std::size_t i = 0; i < series.step.size(); ++i) {
      file << series.step[i] << ',' << factor * series.seconds[i] << '\n';
    }
  }

  /// d1.csv … d4.csv, n1.csv … n4.csv, p1.csv, p2.csv
  void write_pairs(double overhead) {
    test::Scenario s;
    s.overhead = overhead;
    s.step_noise = 0.002;
    s.launch_noise = 0.0005;
    std::mt19937_64 random(42);
    const auto request =
        test::simulate(s, random, statistics::decision_policy("change-overhead").value());
    for (std::size_t i = 0; i < 4; ++i) {
      write("d" + std::to_string(i + 1) + ".csv", request.pairs[i].deterministic);
      write("n" + std::to_string(i + 1) + ".csv", request.pairs[i].nondeterministic);
    }
    write("p1.csv", request.placebo[0].deterministic);
    write("p2.csv", request.placebo[0].nondeterministic);
  }

  Result run(std::vector<std::string> arguments) {
    std::ostringstream out;
    std::ostringstream err;
    Session session{out,   err, clock_, {},      "/nowhere/qualify", folder_.path(), "host", "user",
                    false, 80,  {},     Exit::ok};
    CLI::App app;
    describe_program(app, session);
    arguments.insert(arguments.begin(), "perf");
    std::reverse(arguments.begin(), arguments.end());
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError& error) {
      return {static_cast<int>(Exit::usage), out.str(), error.what()};
    }
    return {static_cast<int>(session.exit), out.str(), err.str()};
  }

  Result run_all(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"--det",    "d1.csv", "d2.csv", "d3.csv", "d4.csv",
                                       "--nondet", "n1.csv", "n2.csv", "n3.csv", "n4.csv"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }

  test::TempFolder folder_;
  test::FakeClock clock_;
};

TEST_F(Perf, ExitCodesFollowTheVerdict) {
  write_pairs(0.003);
  EXPECT_EQ(run_all().exit, 0);
  write_pairs(0.03);
  EXPECT_EQ(run_all().exit, 3);
  write_pairs(0.09);
  EXPECT_EQ(run_all().exit, 1);
  EXPECT_EQ(run_all({"--policy", "mode-overhead"}).exit, 0);
}

TEST_F(Perf, TextNamesVerdictIntervalAndPairs) {
  write_pairs(0.046);
  const auto r = run_all({"--order", "AB,BA,AB,BA", "--placebo", "p1.csv", "p2.csv"});
  EXPECT_NE(r.out.find("needs-decision"), std::string::npos) << r.out << r.err;
  EXPECT_NE(r.out.find("4.6%, 95% interval ["), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("placebo"), std::string::npos);
}

TEST_F(Perf, JsonIsOneRecordWithTheCriteria) {
  write_pairs(0.03);
  const auto r = run_all({"--json", "--warmup-steps", "5"});
  const Json json = Json::parse(r.out);
  EXPECT_EQ(json.at("verdict"), "needs-decision");
  EXPECT_EQ(json.at("policy").at("exclude").at("warmup_steps"), 5);
  EXPECT_EQ(json.at("pairs").at(0).at("deterministic").at("excluded").at("warm-up").at("steps"), 5);
  EXPECT_TRUE(json.contains("schema_version"));
}

TEST_F(Perf, PlotIsWritten) {
  write_pairs(0.03);
  run_all({"--plot", "cost.svg"});
  std::ifstream file(folder_ / "cost.svg");
  std::stringstream content;
  content << file.rdbuf();
  EXPECT_NE(content.str().find("</svg>"), std::string::npos);
}

TEST_F(Perf, OneOrTwoPairsAskForMore) {
  write_pairs(0.30);
  for (const std::size_t k : {1U, 2U}) {
    std::vector<std::string> arguments{"--json", "--det"};
    for (std::size_t i = 1; i <= k; ++i) arguments.push_back("d" + std::to_string(i) + ".csv");
    arguments.emplace_back("--nondet");
    for (std::size_t i = 1; i <= k; ++i) arguments.push_back("n" + std::to_string(i) + ".csv");
    const auto r = run(arguments);
    EXPECT_EQ(r.exit, 3);
    EXPECT_EQ(Json::parse(r.out).at("further_pairs"), 4 - k) << r.out;
  }
}

TEST_F(Perf, UnreadableInputIsTwo) {
  write_pairs(0.0);
  EXPECT_EQ(run({"--det", "missing.csv", "--nondet", "n1.csv"}).exit, 2);
  std::ofstream(folder_ / "noise.csv") << "what is this\n";
  EXPECT_EQ(run({"--det", "noise.csv", "--nondet", "n1.csv"}).exit, 2);
  EXPECT_EQ(run({"--det", "d1.csv", "d2.csv", "--nondet", "n1.csv"}).exit, 2);
  EXPECT_EQ(run_all({"--placebo", "p1.csv"}).exit, 2);
  EXPECT_EQ(run_all({"--order", "AB,BA"}).exit, 2);
  EXPECT_EQ(run_all({"--order", "AB,XY,AB,BA"}).exit, 2);
  EXPECT_EQ(run_all({"--profiler", "9-3"}).exit, 2);
}

TEST_F(Perf, BadDataIsInconclusiveWithItsName) {
  write_pairs(0.0);
  const auto code = [&](const std::vector<std::string>& arguments) {
    auto all = arguments;
    all.emplace_back("--json");
    const auto r = run(all);
    EXPECT_EQ(r.exit, 3) << r.err;
    std::string codes;
    const Json record = Json::parse(r.out);
    for (const auto& fault : record.at("faults")) {
      codes += fault.at("code").get<std::string>() + " ";
    }
    return codes;
  };
  EXPECT_NE(code({"--det", "d1.csv", "--nondet", "d1.csv"}).find("same-run"), std::string::npos);
  statistics::StepSeries milliseconds;
  for (int i = 1; i <= 50; ++i) {
    milliseconds.step.push_back(i);
    milliseconds.seconds.push_back(10 + 0.01 * (i % 7));
  }
  write("ms.csv", milliseconds, 1000);
  EXPECT_NE(code({"--det", "ms.csv", "--nondet", "n1.csv"}).find("units-mixed"), std::string::npos);
  milliseconds.step.resize(30);
  milliseconds.seconds.resize(30);
  write("short.csv", milliseconds);
  EXPECT_NE(code({"--det", "short.csv", "--nondet", "n1.csv"}).find("unequal-lengths"),
            std::string::npos);
  milliseconds.seconds[12] = 0;
  write("zero.csv", milliseconds);
  EXPECT_NE(code({"--det", "zero.csv", "--nondet", "short.csv"}).find("bad-time"),
            std::string::npos);
}

TEST_F(Perf, TheSlowestRankIsNamedWhereTheRunLogsItsRanks) {
  for (const char* name : {"a.csv", "b.csv"}) {
    std::ofstream file(folder_ / name);
    file << "step,iteration_time_s,rank-time/0,rank-time/1,rank-time/2\n";
    for (int i = 1; i <= 40; ++i) {
      const double wobble = 1e-4 * (i * (name[0] - 'a' + 3) % 7);
      file << i << ',' << 1.1 + wobble << ",1.0," << (name[0] == 'a' ? 1.08 : 1.0) << ",0.99\n";
    }
  }
  const std::vector<std::string> arguments{"--det", "a.csv", "--nondet", "b.csv"};
  EXPECT_NE(run(arguments).out.find("deterministic rank 1, 8.0% above the median rank, in 1 of 1"),
            std::string::npos)
      << run(arguments).out;
  const Json json = Json::parse(run({"--det", "a.csv", "--nondet", "b.csv", "--json"}).out);
  EXPECT_EQ(json.at("straggler").at("deterministic").at("rank"), 1);
  EXPECT_EQ(json.at("pairs").at(0).at("slowest_rank").at("nondeterministic").at("rank"), 0);
}

TEST_F(Perf, ALogThatSaysTheOtherModeMeansSwappedArms) {
  const auto log = [&](const std::string& name, const char* mode, double seconds) {
    std::ofstream file(folder_ / name);
    file << "  deterministic_mode .............................. " << mode << "\n";
    for (int i = 1; i <= 40; ++i) {
      file << " [2026-01-01 00:00:" << (i < 10 ? "0" : "") << i << "." << (name[0] - 'a')
           << "00000] iteration " << i << "/      40 | consumed samples: " << 16 * i
           << " | elapsed time per iteration (ms): " << 1000 * seconds + i % 7
           << " | learning rate: 1.000000E-04 | global batch size:    16 | lm loss: 1.0" << i
           << "E+00 | loss scale: 1.0 | grad norm: 0.5 | number of skipped iterations:   0"
           << " | number of nan iterations:   0 |\n";
    }
  };
  log("a.log", "True", 10.0);
  log("b.log", "False", 10.1);
  const auto right = Json::parse(run({"--det", "a.log", "--nondet", "b.log", "--json"}).out);
  EXPECT_EQ(right.at("faults").size(), 0U) << right.dump();
  const auto r = run({"--det", "b.log", "--nondet", "a.log", "--json"});
  EXPECT_NE(r.out.find("arms-swapped"), std::string::npos) << r.out << r.err;
}

}  // namespace
}  // namespace qualify::cli
