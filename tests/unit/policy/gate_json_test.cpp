#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "qualify/policy/gate.hpp"

namespace qualify::policy {
namespace {

using namespace std::chrono_literals;

Gate repeatability() {
  Gate gate;
  gate.name = "repeat-48";
  gate.run_limit = 90min;
  gate.arm = "det";
  gate.runs = 3;
  gate.level = exactness::Level::e2;
  gate.required_metrics = {"lm loss", "grad-norm", "a \"quoted\" name: #1"};
  gate.steps = 50;
  return gate;
}

Gate performance() {
  Gate gate;
  gate.name = "cost";
  gate.kind = GateKind::performance;
  gate.run_limit = 45s;
  gate.deterministic_arm = "det";
  gate.nondeterministic_arm = "fast";
  gate.looks = {{4, 0.01}, {6, 0.04}};
  gate.pairs = 6;
  gate.placebo_pairs = 2;
  gate.decision = "mode-overhead";
  gate.exclude.warmup_steps = 7;
  gate.exclude.checkpoint = {50, 2};
  gate.exclude.profiler = {{10, 12}, {40, 41}};
  gate.exclude.restarts = {101, 201};
  return gate;
}

TEST(RecordedGate, ComesBackWithItsPolicyDigest) {
  for (const Gate& gate : {repeatability(), performance()}) {
    const auto back = gate_from_json(to_json(gate));
    ASSERT_TRUE(back) << back.error().describe();
    EXPECT_EQ(policy_digest(*back), policy_digest(gate));
    EXPECT_EQ(back->run_limit, gate.run_limit);
  }
}

/// SHA-256 of {"allocation":"separate","arm":"det",…,"steps":50}, computed by another program from
/// what the first version wrote: fields that came later must not move it.
TEST(RecordedGate, OfTheFirstVersionKeepsItsPolicyDigest) {
  EXPECT_EQ(policy_digest(repeatability()).hex(),
            "228e5cb7bf2c010ca155a215c9899047287b4a9ac7ac9fa9dbf753f4fc87dd1a");
}

TEST(RecordedGate, ComesBackWhereOneLookStandsForNone) {
  for (const std::uint32_t pairs : {1U, 4U, 9U}) {
    Gate gate = performance();
    gate.looks.clear();
    gate.pairs = pairs;
    const auto back = gate_from_json(to_json(gate));
    ASSERT_TRUE(back) << pairs << ": " << back.error().describe();
    EXPECT_EQ(policy_digest(*back), policy_digest(gate));
  }
}

TEST(RecordedGate, IsRefusedWhereItIsNotAsRecorded) {
  const Json good = to_json(repeatability());
  const auto refused = [](const Json& json) {
    const auto read = gate_from_json(json);
    return !read && read.error().code == Errc::integrity;
  };
  EXPECT_TRUE(refused(Json::array()));
  for (const auto& [key, value] : good.items()) {
    Json changed = good;
    changed.erase(key);
    EXPECT_TRUE(refused(changed)) << key << " left out";
    changed[key] = Json::object();
    EXPECT_TRUE(refused(changed)) << key << " of another kind";
  }
  Json more = good;
  more["lenient"] = true;
  EXPECT_TRUE(refused(more));
}

}  // namespace
}  // namespace qualify::policy
