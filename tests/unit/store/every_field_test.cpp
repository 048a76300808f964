#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "fixture.hpp"

namespace qualify::store {
namespace {

using spec::BundleSpec;

/// A new field breaks the build here: give it a change below, or say why it means nothing.
[[maybe_unused]] void every_field_is_listed(BundleSpec& s) {
  [[maybe_unused]] auto& [file, name, recipe, model, code, container, configs, environment, passed,
                          required, arms, data, topology, seeds, launch, outputs] = s;
  [[maybe_unused]] auto& [c_name, c_repository, c_revision, c_mark] = s.code[0];
  [[maybe_unused]] auto& [f_name, f_file, f_check, f_mark] = s.configs[0];
  [[maybe_unused]] auto& [k_kind, k_file, k_reference, k_mark] = s.container;
  [[maybe_unused]] auto& [a_name, a_arguments, a_environment, a_mark] = s.arms[0];
  [[maybe_unused]] auto& [d_name, d_path, d_digest, d_mark] = s.data[0];
  [[maybe_unused]] auto& [t_nodes, t_gpus, t_tp, t_pp, t_ep, t_cp, t_dp] = s.topology;
  [[maybe_unused]] auto& [l_tasks, l_argv] = s.launch;
  [[maybe_unused]] auto& [o_kind, o_path, o_format, o_required] = s.outputs[0];
}

struct Change {
  const char* what;
  std::function<void(BundleSpec&)> apply;
};

std::vector<Change> changes(const Fixture& f) {
  const std::string external = sha256("x").str();
  return {
      {"name", [](auto& s) { s.name = "demo2"; }},
      {"recipe", [](auto& s) { s.recipe = spec::RecipeClass::production; }},
      {"model", [](auto& s) { s.model = "m"; }},
      {"code name", [](auto& s) { s.code[0].name = "other"; }},
      {"code revision", [](auto& s) { s.code[0].revision = "main"; }},
      {"code added", [](auto& s) { s.code.push_back(s.code[0]), s.code[1].name = "two"; }},
      {"code removed", [](auto& s) { s.code.clear(); }},
      {"container kind",
       [external](auto& s) {
         s.container.kind = spec::ContainerKind::reference;
         s.container.reference = "r/n@" + external;
       }},
      {"container reference",
       [](auto& s) {
         s.container.kind = spec::ContainerKind::reference;
         s.container.reference = "r/n@" + sha256("y").str();
       }},
      {"container file",
       [&f](auto& s) {
         s.container.kind = spec::ContainerKind::sqsh;
         s.container.file = f.folder / "image.sqsh";
       }},
      {"config name", [](auto& s) { s.configs[0].name = "other"; }},
      {"config file", [&f](auto& s) { s.configs[0].file = f.folder / "other.yaml"; }},
      {"config content", [&f](auto& s) { s.configs[0].file = f.folder / "b/train.yaml"; }},
      {"environment value", [](auto& s) { s.environment["NCCL_ALGO"] = "Tree"; }},
      {"environment name",
       [](auto& s) {
         s.environment = {{"NCCL_ALGOS", "Ring"}};
       }},
      {"passed", [](auto& s) { s.passed_environment = {"WANDB_API_KEY"}; }},
      {"required",
       [](auto& s) {
         s.required_environment = {{"NCCL_ALGO", "Ring"}};
       }},
      {"arm name", [](auto& s) { s.arms[0].name = "other"; }},
      {"arm arguments", [](auto& s) { s.arms[0].arguments.push_back("x"); }},
      {"arm arguments split",
       [](auto& s) {
         s.arms[0].arguments = {"--deterministic", "-mode"};
       }},
      {"arm environment", [](auto& s) { s.arms[0].environment["A"] = "1"; }},
      {"arm order", [](auto& s) { std::swap(s.arms[0], s.arms[1]); }},
      {"data name", [](auto& s) { s.data[0].name = "other"; }},
      {"data content", [&f](auto& s) { s.data[0].path = f.folder / "corpus/sub"; }},
      {"data file", [&f](auto& s) { s.data[0].path = f.folder / "corpus/a.bin"; }},
      {"data external",
       [external](auto& s) {
         s.data[0].path.reset();
         s.data[0].digest = external;
       }},
      {"nodes", [](auto& s) { s.topology.nodes = 2; }},
      {"gpus", [](auto& s) { s.topology.gpus_per_node = 8; }},
      {"tp", [](auto& s) { s.topology.tensor_parallel = 2; }},
      {"pp", [](auto& s) { s.topology.pipeline_parallel = 2; }},
      {"ep", [](auto& s) { s.topology.expert_parallel = 2; }},
      {"cp", [](auto& s) { s.topology.context_parallel = 2; }},
      {"dp", [](auto& s) { s.topology.data_parallel = 2; }},
      {"seeds", [](auto& s) { s.seeds = {8}; }},
      {"seed beyond 2^53", [](auto& s) { s.seeds = {9007199254740993}; }},
      {"its neighbour", [](auto& s) { s.seeds = {9007199254740992}; }},
      {"tasks", [](auto& s) { s.launch.tasks_per_node = 8; }},
      {"argv", [](auto& s) { s.launch.argv[0] = "python"; }},
      {"output kind", [](auto& s) { s.outputs[0].kind = "log"; }},
      {"output path", [](auto& s) { s.outputs[0].path = "m"; }},
      {"output format", [](auto& s) { s.outputs[0].format = "jsonl"; }},
      {"output required", [](auto& s) { s.outputs[0].required = false; }},
  };
}

TEST(Serializer, EveryFieldChangesTheDigest) {
  const Fixture f;
  const auto original = f.seal().value().digest;
  f.write("other.yaml", "layers: 4\n");
  f.write("b/train.yaml", "layers: 5\n");
  test::run({"mksquashfs", (f.folder / "corpus").string(), (f.folder / "image.sqsh").string(),
             "-quiet", "-no-progress"});
  const auto spec = spec::read_bundle_spec(f.folder / "bundle.yaml").value();
  auto store = f.store();
  std::set<Digest> seen{original};
  for (const Change& change : changes(f)) {
    BundleSpec changed = spec;
    change.apply(changed);
    const auto sealed = seal(changed, store);
    ASSERT_TRUE(sealed) << change.what << ": " << sealed.error().describe();
    EXPECT_TRUE(seen.insert(sealed->digest).second) << change.what << " changes nothing";
    EXPECT_EQ(load(store, sealed->digest)->digest, sealed->digest) << change.what;
  }
}

TEST(Serializer, WhatMeansNothingChangesNothing) {
  const Fixture f;
  const auto original = f.seal().value().digest;
  auto spec = spec::read_bundle_spec(f.folder / "bundle.yaml").value();
  spec.file = "/elsewhere/bundle.yaml";
  spec.code[0].mark = spec.configs[0].mark = spec.arms[0].mark = spec.data[0].mark = {99, 9};
  spec.configs[0].check = false;
  fs::copy(f.repo.path(), f.folder / "moved", fs::copy_options::recursive);
  spec.code[0].repository = f.folder / "moved";
  fs::copy(f.folder / "corpus", f.folder / "corpus2", fs::copy_options::recursive);
  spec.data[0].path = f.folder / "corpus2";
  auto store = f.store();
  EXPECT_EQ(seal(spec, store)->digest, original);
}

}  // namespace
}  // namespace qualify::store
