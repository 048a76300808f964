#include "qualify/spec/bundle_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "qualify/base/files.hpp"
#include "qualify/spec/placeholders.hpp"
#include "support/temp_folder.hpp"

namespace qualify::spec {
namespace {

using test::TempFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kWhole[] = R"(schema_version: 1
name: nemotron
recipe: production
model: nemotron3-ultra
code:
  megatron: {repository: ../Megatron-LM, revision: v1.2}
container: {kind: sqsh, file: image.sqsh}
configs:
  train: {file: train.yaml}
environment: {NCCL_ALGO: Ring, PYTHONPATH: '{code.megatron}'}
passed_environment: [WANDB_API_KEY]
required_environment: {NVTE_ALLOW_NONDETERMINISTIC_ALGO: '0'}
arms:
  deterministic: {arguments: [--deterministic-mode]}
  nondeterministic: {environment: {NCCL_ALGO: Tree}}
data:
  corpus: {path: /data/corpus}
topology: {nodes: 48, gpus_per_node: 8, tensor_parallel: 4, pipeline_parallel: 12, expert_parallel: 16}
seeds: [1234]
launch:
  tasks_per_node: 8
  argv: [python, '{code.megatron}/pretrain.py', --seed, '{seed}', --out, '{output}', '{{literal}}']
outputs:
  - {kind: metrics, path: tensorboard, format: tensorboard}
  - {kind: log, path: log.txt, required: false}
)";

Result<BundleSpec> read(const TempFolder& folder, const std::string& text) {
  EXPECT_TRUE(write_file_atomic(folder / "bundle.yaml", text));
  return read_bundle_spec(folder / "bundle.yaml");
}

std::string refusal(const std::string& text) {
  const TempFolder folder;
  const auto spec = read(folder, text);
  return spec ? "accepted" : spec.error().describe();
}

std::string with(std::string from, std::string to) {
  std::string text = kWhole;
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(BundleSpec, ReadsEveryField) {
  const TempFolder folder;
  const auto spec = read(folder, kWhole).value();
  EXPECT_EQ(spec.recipe, RecipeClass::production);
  ASSERT_EQ(spec.code.size(), 1U);
  EXPECT_EQ(spec.code[0].repository, folder.path().parent_path() / "Megatron-LM");
  EXPECT_EQ(spec.code[0].revision, "v1.2");
  EXPECT_EQ(spec.container.kind, ContainerKind::sqsh);
  EXPECT_EQ(spec.container.file, folder / "image.sqsh");
  EXPECT_EQ(spec.arms[0].name, "deterministic");
  EXPECT_EQ(spec.arms[1].environment.at("NCCL_ALGO"), "Tree");
  EXPECT_EQ(spec.data[0].path, "/data/corpus");
  EXPECT_EQ(spec.topology.data_parallel, 8U);  // 384 / (4 x 12)
  EXPECT_THAT(spec.seeds, ElementsAre(1234));
  EXPECT_EQ(spec.launch.tasks_per_node, 8U);
  EXPECT_FALSE(spec.outputs[1].required);
}

TEST(BundleSpec, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(refusal(with("recipe: production", "recipe: prod")), HasSubstr("bundle.yaml:3:9:"));
  EXPECT_THAT(refusal(with("seeds:", "seds:")), HasSubstr("did you mean 'seeds'"));
  EXPECT_THAT(refusal(with("{code.megatron}/pre", "{code.megatrn}/pre")),
              HasSubstr("did you mean '{code.megatron}'"));
  EXPECT_THAT(refusal(with("path: tensorboard", "path: ../x")), HasSubstr("leaves {output}"));
  EXPECT_THAT(refusal(with("format: tensorboard", "format: tensorbord")), HasSubstr("tensorboard"));
  EXPECT_THAT(refusal(with("tensor_parallel: 4", "tensor_parallel: 5")),
              HasSubstr("but there are 384 GPUs"));
  EXPECT_THAT(refusal(with("expert_parallel: 16", "expert_parallel: 7")),
              HasSubstr("expert x pipeline parallel does not divide"));
  EXPECT_THAT(
      refusal(with("{kind: sqsh, file: image.sqsh}", "{kind: reference, reference: 'a/b:latest'}")),
      HasSubstr("not pinned by digest"));
  EXPECT_THAT(refusal(with("{NCCL_ALGO: Ring", "{WANDB_API_KEY: x, NCCL_ALGO: Ring")),
              HasSubstr("both set and passed"));
  EXPECT_THAT(refusal(with("seeds: [1234]", "seeds: []")), HasSubstr("{seed} is used"));
  EXPECT_THAT(refusal(with("{path: /data/corpus}", "{digest: abc}")), HasSubstr("is not a digest"));
  EXPECT_THAT(refusal(with("  train: {", "  ../x: {")), HasSubstr("not a usable name"));
  EXPECT_THAT(refusal(with("{file: train.yaml", "{file: \"a\\nb\"")),
              HasSubstr("does not name a file that can be sealed"));
}

TEST(BundleSpec, WhatIsRequiredIsNotSetToSomethingElse) {
  const std::string head = "required_environment: {NCCL_ALGO: Ring}\n";
  const auto said = [&](const std::string& environment, const std::string& arm) {
    const TempFolder folder;
    const auto spec =
        read(folder, "schema_version: 1\nname: n\nrecipe: debug\n" + head + environment +
                         "arms: {a: {environment: {" + arm + "}}}\nlaunch: {argv: [x]}\n");
    return spec ? "taken" : spec.error().describe();
  };
  EXPECT_EQ(said("", ""), "taken");
  EXPECT_EQ(said("environment: {NCCL_ALGO: Ring}\n", ""), "taken");
  EXPECT_EQ(said("environment: {NCCL_ALGO: Tree}\n", "NCCL_ALGO: Ring"), "taken");
  EXPECT_EQ(said("", "NCCL_ALGO: '{output}'"), "taken") << "not known before the run";
  EXPECT_THAT(said("environment: {NCCL_ALGO: Tree}\n", ""),
              HasSubstr("arm 'a' has NCCL_ALGO='Tree', but 'required_environment' says 'Ring'"));
  EXPECT_THAT(said("environment: {NCCL_ALGO: Ring}\n", "NCCL_ALGO: Tree"),
              HasSubstr("arm 'a' has"));
}

TEST(BundleSpec, AllFaultsComeAtOnce) {
  const TempFolder folder;
  const auto spec = read(folder, "schema_version: 2\nname: ''\nrecipe: x\nunknown: 1\n");
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().code, Errc::invalid_input);
  EXPECT_GE(spec.error().others.size(), 4U) << spec.error().describe();
}

/// Every damage to a good spec is a fault with a place, or leaves a spec; nothing crashes.
TEST(BundleSpec, NoDamageToASpecIsMoreThanAFault) {
  const test::TempFolder folder;
  const std::string good = kWhole;
  constexpr char kBytes[] = "{}[]:,#&*!|>'\"%@`-?\n\t 0aZ\xff\x00";
  std::mt19937_64 random(20261130);
  int faults = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string bad = good;
    for (std::uint64_t n = 1 + random() % 3; n > 0; --n) {
      const std::size_t at = random() % bad.size();
      const char byte = kBytes[random() % (sizeof kBytes - 1)];
      if (random() % 3 == 0) {
        bad.erase(at, random() % 40);
      } else if (random() % 2 == 0) {
        bad.insert(at, 1 + random() % 3, byte);
      } else {
        bad[at] = byte;
      }
      if (bad.empty()) bad = "-";
    }
    std::ofstream(folder / "bundle.yaml", std::ios::binary) << bad;
    const auto spec = read_bundle_spec(folder / "bundle.yaml");
    if (spec) continue;
    ++faults;
    EXPECT_EQ(exit_for(spec.error().code), Exit::usage) << bad;
    EXPECT_TRUE(spec.error().context.starts_with((folder / "bundle.yaml").string()))
        << spec.error().describe();
  }
  EXPECT_GT(faults, 500);
}

TEST(Placeholders, AreReplacedAndBracesEscaped) {
  const auto value = [](std::string_view name) -> std::optional<std::string> {
    if (name == "output") return "/o";
    return std::nullopt;
  };
  EXPECT_EQ(expand_placeholders("a={output}/x {{y}}", value).value(), "a=/o/x {y}");
  EXPECT_EQ(expand_placeholders("{{{output}}}", value).value(), "{/o}");
  EXPECT_FALSE(expand_placeholders("a}", value));
  EXPECT_FALSE(expand_placeholders("{nothing}", value));
  EXPECT_FALSE(expand_placeholders("{output", value));
}

}  // namespace
}  // namespace qualify::spec
