#include "qualify/scheduler/module.hpp"

#include <gmock/gmock.h>

#include "qualify/base/files.hpp"
#include "support/temp_folder.hpp"

namespace qualify::scheduler {
namespace {

using ::testing::HasSubstr;

TEST(Module, AMissingOneIsUnavailableWithTheLoadersWords) {
  const auto loaded = load_module("/nonexistent/module.so");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Errc::unavailable);
  EXPECT_THAT(loaded.error().describe(), HasSubstr("/nonexistent/module.so"));
}

TEST(Module, AFileThatIsNoLibraryIsUnavailable) {
  const test::TempFolder folder;
  ASSERT_TRUE(write_file_atomic(folder / "module.so", "no library"));
  EXPECT_EQ(load_module(folder / "module.so").error().code, Errc::unavailable);
}

TEST(Module, AnotherLibraryIsUnsupported) {
  const auto described = describe_module("libm.so.6");
  ASSERT_FALSE(described);
  EXPECT_EQ(described.error().code, Errc::unsupported);
}

}  // namespace
}  // namespace qualify::scheduler
