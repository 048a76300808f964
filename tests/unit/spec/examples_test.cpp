#include <gtest/gtest.h>

#include "qualify/spec/bundle_spec.hpp"

namespace qualify::spec {
namespace {

const std::filesystem::path kExamples = QUALIFY_EXAMPLES;

TEST(Examples, NemotronIsFortyEightNodesOfEight) {
  const auto spec =
      read_bundle_spec(kExamples / "megatron-determinism/bundles/nemotron3-ultra-48n.yaml");
  ASSERT_TRUE(spec) << spec.error().describe();
  EXPECT_EQ(spec->recipe, RecipeClass::production);
  EXPECT_EQ(spec->topology.nodes * spec->topology.gpus_per_node, 384U);
  EXPECT_EQ(spec->topology.nodes, 48U);
  EXPECT_EQ(spec->topology.tensor_parallel, 4U);
  EXPECT_EQ(spec->topology.pipeline_parallel, 12U);
  EXPECT_EQ(spec->topology.expert_parallel, 16U);
  EXPECT_EQ(spec->topology.data_parallel, 8U);
  EXPECT_EQ(spec->launch.tasks_per_node, 8U);
}

TEST(Examples, DeepSeekIsAProxy) {
  const auto spec =
      read_bundle_spec(kExamples / "megatron-determinism/bundles/deepseek-v3-proxy.yaml");
  ASSERT_TRUE(spec) << spec.error().describe();
  EXPECT_EQ(spec->recipe, RecipeClass::proxy);
  EXPECT_EQ(spec->container.kind, ContainerKind::reference);
}

TEST(Examples, EveryBundleOfTheRoadmapIsRead) {
  std::size_t bundles = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(kExamples / "megatron-determinism/bundles")) {
    if (entry.path().filename() == "nemotron3-ultra.yaml") continue;  // a config of two of them
    const auto spec = read_bundle_spec(entry.path());
    ASSERT_TRUE(spec) << spec.error().describe();
    EXPECT_EQ(spec->name, entry.path().stem());
    EXPECT_NE(spec->recipe, RecipeClass::debug);
    ++bundles;
  }
  EXPECT_EQ(bundles, 9U);
}

TEST(Examples, TheQuickstartIsRead) {
  const auto spec = read_bundle_spec(kExamples / "quickstart/bundle.yaml");
  ASSERT_TRUE(spec) << spec.error().describe();
  EXPECT_EQ(spec->recipe, RecipeClass::debug);
}

}  // namespace
}  // namespace qualify::spec
