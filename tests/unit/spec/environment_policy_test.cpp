#include "qualify/spec/environment_policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qualify::spec {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(EnvironmentPolicy, TheListIsSortedAndWithoutRepeats) {
  const auto& names = numeric_variables();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  EXPECT_TRUE(is_numeric_variable("NCCL_ALGO"));
  EXPECT_FALSE(is_numeric_variable("PATH"));
}

TEST(EnvironmentPolicy, NotSetIsRecordedToo) {
  const auto numeric = numeric_environment({{"NCCL_ALGO", "Ring"}, {"PATH", "/bin"}});
  EXPECT_EQ(numeric.at("NCCL_ALGO"), "Ring");
  EXPECT_EQ(numeric.at("NCCL_PROTO"), std::nullopt);
  EXPECT_FALSE(numeric.contains("PATH"));
}

TEST(EnvironmentPolicy, FindsWhatIsMissingOverriddenOrFromOutside) {
  EXPECT_THAT(environment_faults({{"NCCL_ALGO", "Ring"}}, {{"NCCL_ALGO", "Ring"}},
                                 {{"NCCL_ALGO", "Ring"}, {"EDITOR", "vi"}}, "n1"),
              IsEmpty());
  const auto faults = environment_faults(
      {{"NCCL_ALGO", "Ring"}, {"MAMBA_DETERMINISTIC", "1"}}, {{"NCCL_PROTO", "Simple"}},
      {{"NCCL_ALGO", "Tree"}, {"NCCL_PROTO", "LL"}, {"NCCL_BUFFSIZE", "1"}}, "n1");
  ASSERT_EQ(faults.size(), 4U);
  EXPECT_THAT(faults[0].describe(), HasSubstr("n1: MAMBA_DETERMINISTIC is not set"));
  EXPECT_THAT(faults[1].describe(), HasSubstr("NCCL_ALGO is 'Tree', the bundle requires 'Ring'"));
  EXPECT_THAT(faults[2].describe(), HasSubstr("NCCL_BUFFSIZE='1' changes numerics"));
  EXPECT_THAT(faults[3].describe(), HasSubstr("the bundle says 'Simple'"));
}

}  // namespace
}  // namespace qualify::spec
