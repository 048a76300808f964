#include "qualify/policy/gate.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "support/temp_folder.hpp"

namespace qualify::policy {
namespace {

Result<Qualification> read(const std::string& body) {
  const test::TempFolder folder;
  std::ofstream(folder / "qualification.yaml")
      << "schema_version: 1\ngates:\n  cost:\n    kind: performance\n"
         "    arms: {deterministic: det, nondeterministic: fast}\n"
      << body;
  return read_qualification(folder / "qualification.yaml");
}

TEST(PerformanceGate, HasFourPairsOnePlaceboAndOneLookUnlessToldOtherwise) {
  const Gate gate = read("").value().gates.at(0);
  EXPECT_EQ(gate.pairs, 4U);
  EXPECT_EQ(gate.placebo_pairs, 1U);
  EXPECT_EQ(gate.decision, "change-overhead");
  EXPECT_EQ(registered_looks(gate), (std::vector<statistics::Look>{{4, 0.05}}));
}

TEST(PerformanceGate, ReadsLooksAndExclusions) {
  const Gate gate = read(
                        "    looks: [{pairs: 4, alpha: 0.01}, {pairs: 6, alpha: 0.04}]\n"
                        "    placebo_pairs: 2\n"
                        "    decision: mode-overhead\n"
                        "    exclude:\n"
                        "      init_steps: 2\n"
                        "      first_iterations: 3\n"
                        "      warmup_steps: 5\n"
                        "      evaluation: {every: 100}\n"
                        "      checkpoint: {every: 50, after: 0}\n"
                        "      profiler: [{first: 20, last: 25}]\n"
                        "      restarts: [51]\n")
                        .value()
                        .gates.at(0);
  EXPECT_EQ(gate.pairs, 6U);
  EXPECT_EQ(registered_looks(gate), (std::vector<statistics::Look>{{4, 0.01}, {6, 0.04}}));
  EXPECT_EQ(gate.exclude.init_steps, 2);
  EXPECT_EQ(gate.exclude.first_iterations, 3);
  EXPECT_EQ(gate.exclude.warmup_steps, 5);
  EXPECT_EQ(gate.exclude.evaluation, (statistics::Recurring{100, 1}));
  EXPECT_EQ(gate.exclude.checkpoint, (statistics::Recurring{50, 0}));
  EXPECT_EQ(gate.exclude.profiler, (std::vector<statistics::StepRange>{{20, 25}}));
  EXPECT_EQ(gate.exclude.restarts, (std::vector<std::int64_t>{51}));
}

TEST(PerformanceGate, RefusesWhatWouldSpendMoreThanFivePercent) {
  EXPECT_FALSE(read("    looks: [{pairs: 4, alpha: 0.03}, {pairs: 6, alpha: 0.04}]\n"));
  EXPECT_FALSE(read("    looks: [{pairs: 6, alpha: 0.01}, {pairs: 4, alpha: 0.04}]\n"));
  EXPECT_FALSE(read("    looks: [{pairs: 4, alpha: lots}]\n"));
  EXPECT_FALSE(read("    looks: [{pairs: 2, alpha: 0.05}]\n"));
  EXPECT_FALSE(read("    looks: [{pairs: 4, alpha: 0.05}]\n    pairs: 8\n"));
}

TEST(PerformanceGate, RefusesExclusionsThatSayNothing) {
  EXPECT_FALSE(read("    exclude: {evaluation: {after: 1}}\n"));
  EXPECT_FALSE(read("    exclude: {profiler: [{first: 9, last: 3}]}\n"));
  EXPECT_FALSE(read("    exclude: {slow_steps: 3}\n"));
}

TEST(PerformanceGate, EveryFieldChangesThePolicyDigest) {
  const std::vector<std::function<void(Gate&)>> changes = {
      [](Gate&) {},
      [](Gate& g) { g.pairs = 6; },
      [](Gate& g) { g.placebo_pairs = 2; },
      [](Gate& g) { g.metric = "step-time"; },
      [](Gate& g) { g.decision = "mode-overhead"; },
      [](Gate& g) {
        g.looks = {{4, 0.01}, {6, 0.04}};
      },
      [](Gate& g) { g.exclude.init_steps = 9; },
      [](Gate& g) { g.exclude.first_iterations = 9; },
      [](Gate& g) { g.exclude.warmup_steps = 9; },
      [](Gate& g) { g.exclude.evaluation.every = 9; },
      [](Gate& g) { g.exclude.checkpoint.every = 9; },
      [](Gate& g) {
        g.exclude.profiler = {{1, 2}};
      },
      [](Gate& g) { g.exclude.restarts = {7}; },
  };
  std::set<std::string> digests;
  for (const auto& change : changes) {
    Gate gate = read("").value().gates.at(0);
    change(gate);
    EXPECT_TRUE(digests.insert(policy_digest(gate).str()).second);
  }
}

}  // namespace
}  // namespace qualify::policy
