#include "qualify/scheduler/job_watch.hpp"

#include <gmock/gmock.h>

#include "cluster_values.hpp"
#include "qualify/scheduler/fake.hpp"
#include "support/fake_clock.hpp"

namespace qualify::scheduler {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Pace, FastAfterAChangeAndSlowWhileNothingHappens) {
  Pace pace;
  EXPECT_EQ(pace.pause(), 50ms);
  for (int i = 0; i < 40; ++i) pace.answered(false, 1ms);
  EXPECT_EQ(pace.pause(), 2s);
  pace.answered(true, 1ms);
  EXPECT_EQ(pace.pause(), 50ms);
}

TEST(Pace, ASlowControllerIsSpared) {
  Pace pace;
  pace.answered(true, 1s);
  EXPECT_EQ(pace.pause(), 20s);
  pace.answered(true, 10min);
  EXPECT_EQ(pace.pause(), 60s);
  pace.answered(true, 1ms);
  EXPECT_EQ(pace.pause(), 50ms) << "recovered";
}

TEST(Pace, ASilentOneIsAskedLessAndLess) {
  Pace pace;
  std::vector<Duration> pauses;
  for (int i = 0; i < 7; ++i) {
    pace.failed();
    pauses.push_back(pace.pause());
  }
  EXPECT_THAT(pauses, ::testing::ElementsAre(2s, 4s, 8s, 16s, 32s, 60s, 60s));
}

class Watch : public ::testing::Test {
 protected:
  Watch() {
    FakeScript script;
    script.reservations = {values::reservation()};
    script.nodes = values::nodes();
    script.jobs = {FakeJob{}};
    fake.emplace(std::move(script), clock);
  }
  test::FakeClock clock;
  std::optional<Fake> fake;
};

TEST_F(Watch, TellsOnlyWhatChanged) {
  JobWatch watch(*fake, clock);
  watch.add("a");
  auto first = watch.poll();
  ASSERT_TRUE(first);
  ASSERT_THAT(*first, SizeIs(1)) << "not known, said once";
  EXPECT_FALSE(first->front().job);
  EXPECT_THAT(*watch.poll(), IsEmpty());
  EXPECT_GT(watch.pause(), 50ms);
}

TEST_F(Watch, AnOutageSaysNothingAboutAnyJob) {
  JobWatch watch(*fake, clock);
  watch.add("a");
  ASSERT_TRUE(watch.poll());
  fake->script().outages = {{clock.now(), clock.now() + 60s}};
  EXPECT_FALSE(watch.poll());
  EXPECT_EQ(watch.pause(), 2s);
  clock.advance(61s);
  EXPECT_THAT(*watch.poll(), IsEmpty());
}

}  // namespace
}  // namespace qualify::scheduler
