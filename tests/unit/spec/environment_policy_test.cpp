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

TEST(EnvironmentPolicy, AnInheritedValueThatDisagreesIsAFault) {
  const std::map<std::string, std::string> required{{"NCCL_ALGO", "Ring"},
                                                    {"MAMBA_DETERMINISTIC", "1"}};
  EXPECT_THAT(inherited_faults(required, {{"NCCL_ALGO", "Ring"}, {"EDITOR", "vi"}}, "n1"),
              IsEmpty());
  const auto faults = inherited_faults(
      required, {{"NCCL_ALGO", "Tree"}, {"MAMBA_DETERMINISTIC", ""}, {"NCCL_PROTO", "LL"}}, "n1");
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_THAT(faults[0].describe(), HasSubstr("n1: MAMBA_DETERMINISTIC is ''"));
  EXPECT_THAT(faults[1].describe(), HasSubstr("NCCL_ALGO is 'Tree', the bundle requires 'Ring'"));
  EXPECT_THAT(faults[1].describe(), HasSubstr("unset NCCL_ALGO"));
}

TEST(EnvironmentPolicy, WhatIsPassedAtLaunchMustBeSet) {
  EXPECT_THAT(missing_passed({"API_TOKEN"}, {{"API_TOKEN", ""}}, "n1"), IsEmpty());
  const auto faults = missing_passed({"USER_KEY", "API_TOKEN"}, {{"EDITOR", "vi"}}, "n1");
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_EQ(faults[0].code, Errc::refused);
  EXPECT_THAT(faults[0].describe(), HasSubstr("n1: the bundle passes USER_KEY at launch"));
  EXPECT_THAT(faults[1].describe(), HasSubstr("export API_TOKEN"));
}

TEST(EnvironmentPolicy, WhatChangesNumericsIsNamed) {
  EXPECT_THAT(
      inherited_numeric({{"NCCL_ALGO", "Ring"}, {"PATH", "/bin"}, {"OMP_NUM_THREADS", "4"}}),
      ::testing::ElementsAre("NCCL_ALGO", "OMP_NUM_THREADS"));
}

}  // namespace
}  // namespace qualify::spec
