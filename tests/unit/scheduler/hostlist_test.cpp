#include "qualify/scheduler/hostlist.hpp"

#include <gmock/gmock.h>

namespace qualify::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Hostlist, RangesKeepTheirWidth) {
  EXPECT_THAT(expand_hostlist("gpu[0009-0011,0384],login1").value(),
              ElementsAre("gpu0009", "gpu0010", "gpu0011", "gpu0384", "login1"));
  EXPECT_THAT(expand_hostlist("n[8-11]").value(), ElementsAre("n8", "n9", "n10", "n11"));
}

TEST(Hostlist, SeveralBracketsMultiplyAndTextMayFollow) {
  EXPECT_THAT(expand_hostlist("r[1-2]n[01-02]-ib").value(),
              ElementsAre("r1n01-ib", "r1n02-ib", "r2n01-ib", "r2n02-ib"));
}

TEST(Hostlist, ThreeHundredEightyFourNodes) {
  EXPECT_THAT(expand_hostlist("gpu[0001-0384]").value(), SizeIs(384));
}

TEST(Hostlist, NothingIsNoName) {
  EXPECT_THAT(expand_hostlist("").value(), IsEmpty());
}

TEST(Hostlist, DamagedListsAreRefused) {
  for (const char* text : {"gpu[1-", "gpu]1[", "gpu[]", "gpu[3-1]", "a,,b", ",a", "a,", "gpu[x]",
                           "gpu[1-99999999]", "gpu[1,]", "n[1-300]m[1-300]"}) {
    EXPECT_FALSE(expand_hostlist(text)) << text;
  }
}

TEST(Hostlist, IsMadeShortForPeopleAndExpandsToTheSameNames) {
  EXPECT_EQ(compress_hostlist({}), "");
  EXPECT_EQ(compress_hostlist({"n1"}), "n1");
  EXPECT_EQ(compress_hostlist({"gpu0003", "gpu0001", "gpu0002", "gpu0007", "login", "gpu0007"}),
            "gpu[0001-0003,0007],login");
  std::vector<std::string> names = {"a-1", "a-2", "a-10", "b", "17", "c07", "c8"};
  auto expanded = expand_hostlist(compress_hostlist(names));
  ASSERT_TRUE(expanded) << compress_hostlist(names);
  std::sort(names.begin(), names.end());
  std::sort(expanded->begin(), expanded->end());
  EXPECT_EQ(*expanded, names);
}

}  // namespace
}  // namespace qualify::scheduler
