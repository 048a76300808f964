#include <gmock/gmock.h>

#include "version.hpp"

namespace qualify::scheduler::slurm {
namespace {

using ::testing::HasSubstr;

TEST(Release, ALibraryOfAnotherReleaseIsRefusedWithBothNumbers) {
  const auto checked = check_library();
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Errc::unsupported);
  EXPECT_THAT(checked.error().message,
              HasSubstr("(interface 99.0.0), the one loaded has interface"));
  EXPECT_THAT(checked.error().hint, HasSubstr("against this cluster's slurm.h"));
}

}  // namespace
}  // namespace qualify::scheduler::slurm
