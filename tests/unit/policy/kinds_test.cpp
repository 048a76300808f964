#include <gmock/gmock.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "qualify/policy/gate.hpp"
#include "support/temp_folder.hpp"

namespace qualify::policy {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kWhole = R"(schema_version: 1
gates:
  scale-3072:
    kind: scale
    topology: {nodes: 384, gpus_per_node: 8}
    arm: det
    metrics: [lm loss]
    max_age: 30d
  baseline-48: {kind: baseline, arm: det, baseline: v3, runs: 1, metrics: [lm loss], recipe: proxy}
  repeat: {kind: repeatability, arm: det, metrics: [lm loss]}
  cost: {kind: performance, arms: {deterministic: det, nondeterministic: fast}}
  coverage:
    kind: coverage
    max_age: 8d
    schedule: weekly Sat 02:00
    models:
      v3: {correctness: repeat, performance: cost}
      hybrid: {correctness: baseline-48, performance: cost}
  nemotron-4:
    kind: enablement
    blockers:
      fla-gdn: {gate: repeat, description: the FLA/GDN path}
      head-256: {gate: baseline-48}
    production: scale-3072
)";

Result<Qualification> read(const std::string& text) {
  const test::TempFolder folder;
  std::ofstream(folder / "q.yaml") << text;
  return read_qualification(folder / "q.yaml");
}

/// All faults, as a person sees them.
std::string faults(const std::string& text) {
  const auto read_ = read(text);
  if (read_) return "taken";
  std::string all = read_.error().describe();
  for (const Error& other : read_.error().others) all += "\n" + other.describe();
  return all;
}

std::string with(const std::string& was, const std::string& now) {
  std::string text = kWhole;
  const auto at = text.find(was);
  if (at == std::string::npos) throw std::invalid_argument(was);
  return text.replace(at, was.size(), now);
}

TEST(GateKinds, AreReadWithTheirFields) {
  const auto all = read(kWhole);
  ASSERT_TRUE(all) << all.error().describe();
  const Gate& scale = *all->gate("scale-3072");
  EXPECT_EQ(scale.kind, GateKind::scale);
  EXPECT_EQ(scale.scale.str(), "384 nodes x 8 GPUs");
  EXPECT_EQ(scale.max_age, 720h);
  EXPECT_EQ(scale.runs, 2U);
  const Gate& baseline = *all->gate("baseline-48");
  EXPECT_EQ(baseline.baseline, "v3");
  EXPECT_EQ(baseline.runs, 1U);
  const Gate& coverage = *all->gate("coverage");
  ASSERT_EQ(coverage.coverage.size(), 2U);
  EXPECT_EQ(coverage.coverage[1].model, "hybrid");
  EXPECT_EQ(coverage.schedule, "weekly Sat 02:00");
  const Gate& enablement = *all->gate("nemotron-4");
  EXPECT_EQ(enablement.blockers.at(0).description, "the FLA/GDN path");
  EXPECT_EQ(enablement.production, "scale-3072");
}

TEST(GateKinds, ScaleAsksForAProductionRecipeUnlessItSaysOtherwise) {
  const auto all = read(kWhole).value();
  EXPECT_EQ(all.gate("scale-3072")->recipe, spec::RecipeClass::production);
  EXPECT_EQ(all.gate("baseline-48")->recipe, spec::RecipeClass::proxy);
  EXPECT_EQ(all.gate("repeat")->recipe, spec::RecipeClass::debug);
  EXPECT_TRUE(suffices(spec::RecipeClass::production, spec::RecipeClass::proxy));
  EXPECT_TRUE(suffices(spec::RecipeClass::debug, spec::RecipeClass::debug));
  EXPECT_FALSE(suffices(spec::RecipeClass::proxy, spec::RecipeClass::production));
  EXPECT_FALSE(suffices(spec::RecipeClass::debug, spec::RecipeClass::proxy));
}

TEST(GateKinds, PartsAreNamedByCellBlockerAndProduction) {
  const auto all = read(kWhole).value();
  const auto cells = parts_of(*all.gate("coverage"));
  ASSERT_EQ(cells.size(), 4U);
  EXPECT_EQ(cells[1].name, "v3/performance");
  EXPECT_EQ(cells[1].gate, "cost");
  const auto blockers = parts_of(*all.gate("nemotron-4"));
  ASSERT_EQ(blockers.size(), 3U);
  EXPECT_EQ(blockers[2].name, "production");
  EXPECT_THAT(parts_of(*all.gate("repeat")), IsEmpty());
}

TEST(GateKinds, RefuseWhatTheyDoNotKnowOrMiss) {
  EXPECT_THAT(faults(with("gpus_per_node: 8", "gpus: 8")), HasSubstr("needs 'gpus_per_node'"));
  EXPECT_THAT(faults(with("    topology: {nodes: 384, gpus_per_node: 8}\n", "")),
              HasSubstr("needs 'topology'"));
  EXPECT_THAT(faults(with("nodes: 384", "nodes: 0")), HasSubstr("q.yaml:5:"));
  EXPECT_THAT(faults(with("baseline: v3, ", "")), HasSubstr("baseline"));
  EXPECT_THAT(faults(with("recipe: proxy", "recipe: prod")), HasSubstr("prod"));
  EXPECT_THAT(faults(with("    max_age: 8d\n", "")), HasSubstr("needs 'max_age'"));
  EXPECT_THAT(faults(with("max_age: 8d", "max_age: 8d\n    runs: 2")), HasSubstr("runs"))
      << "a composite gate has no runs";
  EXPECT_THAT(faults(with("    production: scale-3072\n", "")), HasSubstr("production"));
  EXPECT_THAT(faults(with("head-256:", "production:")), HasSubstr("cannot be called"));
}

TEST(GateKinds, AKeyWithoutAValueIsNoDefault) {
  for (const auto& [was, now] :
       {std::pair{"topology: {nodes: 384, gpus_per_node: 8}", "topology:"},
        {"nodes: 384", "nodes: "},
        {"max_age: 8d", "max_age:"},
        {"max_age: 30d", "max_age:"},
        {"metrics: [lm loss]\n    max_age", "metrics:\n    max_age"},
        {"arms: {deterministic: det, nondeterministic: fast}", "arms: "},
        {"deterministic: det,", "deterministic: ,"},
        {"nondeterministic: fast}}", "nondeterministic: fast}, exclude: {evaluation: {every: }}}"},
        {"schedule: weekly Sat 02:00", "schedule:"},
        {"production: scale-3072", "production:"},
        {"kind: coverage", "kind:"}}) {
    EXPECT_THAT(faults(with(was, now)), HasSubstr("has no value")) << now;
  }
}

TEST(GateKinds, AnOverheadNeedsTwoArms) {
  EXPECT_THAT(faults(with("nondeterministic: fast", "nondeterministic: det")),
              HasSubstr("both arms are 'det'"));
}

TEST(GateKinds, PartsMustBeGatesThatCanAnswer) {
  EXPECT_THAT(faults(with("correctness: repeat", "correctness: repaet")),
              ::testing::AllOf(HasSubstr("q.yaml:17:"), HasSubstr("did you mean 'repeat'?")));
  EXPECT_THAT(faults(with("correctness: repeat", "correctness: cost")),
              HasSubstr("proves no equality"));
  EXPECT_THAT(faults(with("performance: cost", "performance: repeat")),
              HasSubstr("measures no overhead"));
  EXPECT_THAT(faults(with("{gate: baseline-48}", "{gate: coverage}")),
              HasSubstr("has no runs of its own"));
  EXPECT_THAT(faults(with("production: scale-3072", "production: baseline-48")),
              HasSubstr("takes proxy recipes"));
}

TEST(GateKinds, EachComesBackFromTheJournalWithItsPolicyDigest) {
  const auto all = read(kWhole).value();
  for (const Gate& gate : all.gates) {
    const auto back = gate_from_json(to_json(gate));
    ASSERT_TRUE(back) << gate.name << ": " << back.error().describe();
    EXPECT_EQ(policy_digest(*back), policy_digest(gate)) << gate.name;
  }
}

/// The file is also what the schema for editors is checked with.
TEST(GateKinds, AllHaveASampleThatIsReadAndRecorded) {
  const auto all = read_qualification(ALL_KINDS);
  ASSERT_TRUE(all) << all.error().describe();
  std::set<GateKind> kinds;
  for (const Gate& gate : all->gates) {
    kinds.insert(gate.kind);
    const auto back = gate_from_json(to_json(gate));
    ASSERT_TRUE(back) << gate.name << ": " << back.error().describe();
    EXPECT_EQ(policy_digest(*back), policy_digest(gate)) << gate.name;
  }
  EXPECT_EQ(kinds, std::set<GateKind>(kGateKinds.begin(), kGateKinds.end()));
}

TEST(PolicyDigest, ChangesWithEveryFieldOfANewKind) {
  using Change = std::function<void(Gate&)>;
  const std::map<std::string, std::vector<Change>> changes = {
      {"scale-3072",
       {[](Gate& g) { g.scale.nodes = 48; }, [](Gate& g) { g.scale.gpus_per_node = 4; },
        [](Gate& g) { g.arm = "x"; }, [](Gate& g) { g.runs = 3; },
        [](Gate& g) { g.level = exactness::Level::e4; },
        [](Gate& g) { g.required_metrics.emplace_back("x"); }, [](Gate& g) { g.steps = 9; },
        [](Gate& g) { g.allocation = Allocation::same; },
        [](Gate& g) { g.nodes = NodeChoice::same; },
        [](Gate& g) { g.recipe = spec::RecipeClass::proxy; }, [](Gate& g) { g.max_age = 1h; },
        [](Gate& g) { g.run_limit = 1min; }, [](Gate& g) { g.heartbeat = 1min; }}},
      {"baseline-48", {[](Gate& g) { g.baseline = "v4"; }, [](Gate& g) { g.runs = 2; }}},
      {"repeat",
       {[](Gate& g) { g.recipe = spec::RecipeClass::production; },
        [](Gate& g) { g.max_age = 1h; }}},
      {"coverage",
       {[](Gate& g) { g.coverage[0].model = "x"; },
        [](Gate& g) { g.coverage[0].correctness = "x"; },
        [](Gate& g) { g.coverage[1].performance = "x"; }, [](Gate& g) { g.coverage.pop_back(); },
        [](Gate& g) { g.max_age = 1h; }}},
      {"nemotron-4",
       {[](Gate& g) { g.blockers[0].name = "x"; }, [](Gate& g) { g.blockers[0].gate = "x"; },
        [](Gate& g) { g.blockers.pop_back(); }, [](Gate& g) { g.production = "x"; }}}};
  const auto all = read(kWhole).value();
  for (const Gate& gate : all.gates) {
    std::set<Digest> seen = {policy_digest(gate)};
    const auto own = changes.find(gate.name);
    if (own == changes.end()) continue;
    for (std::size_t i = 0; i < own->second.size(); ++i) {
      Gate changed = gate;
      own->second[i](changed);
      EXPECT_TRUE(seen.insert(policy_digest(changed)).second) << gate.name << ", change " << i;
    }
    Gate words = gate;
    words.description = "for people";
    words.schedule = "daily 02:00";
    for (Blocker& blocker : words.blockers) blocker.description = "for people";
    EXPECT_EQ(policy_digest(words), policy_digest(gate)) << gate.name;
  }
}

}  // namespace
}  // namespace qualify::policy
