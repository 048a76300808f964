#include "qualify/scheduler/types.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "cluster_values.hpp"

namespace qualify::scheduler {
namespace {

using namespace std::chrono_literals;

TEST(Reservation, JsonRoundTripsEveryField) {
  const Reservation before = values::reservation();
  const Reservation after = reservation_from_json(to_json(before)).value();
  EXPECT_EQ(to_json(after), to_json(before));
  EXPECT_EQ(fingerprint(after), fingerprint(before));
}

TEST(Reservation, EveryFieldIsPartOfTheFingerprint) {
  const std::vector<std::function<void(Reservation&)>> changes = {
      [](Reservation& r) { r.name += "x"; },
      [](Reservation& r) { r.start += 1s; },
      [](Reservation& r) { r.end += 1s; },
      [](Reservation& r) { r.flags.emplace_back("FLEX"); },
      [](Reservation& r) { r.nodes.back() = "gpu0005"; },
      [](Reservation& r) { ++r.node_count; },
      [](Reservation& r) { ++r.core_count; },
      [](Reservation& r) { r.partition += "x"; },
      [](Reservation& r) { r.users.emplace_back("x"); },
      [](Reservation& r) { r.accounts.emplace_back("x"); },
      [](Reservation& r) { r.groups.emplace_back("x"); },
      [](Reservation& r) { r.licenses += "x"; },
      [](Reservation& r) { r.features += "x"; },
      [](Reservation& r) { r.tres += "x"; },
      [](Reservation& r) { r.allowed_partitions.emplace_back("x"); },
      [](Reservation& r) { r.qos.emplace_back("x"); }};
  ASSERT_EQ(changes.size(), to_json(values::reservation()).size());
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Reservation changed = values::reservation();
    changes[i](changed);
    EXPECT_NE(fingerprint(changed), fingerprint(values::reservation())) << "change " << i;
  }
}

TEST(Reservation, RefusesWhatIsNotOne) {
  EXPECT_FALSE(reservation_from_json(Json::array()));
  Json missing = to_json(values::reservation());
  for (auto it = missing.begin(); it != missing.end(); ++it) {
    if (it.key() == "allowed_partitions" || it.key() == "qos") continue;  // of later releases
    Json cut = missing;
    cut.erase(it.key());
    EXPECT_FALSE(reservation_from_json(cut)) << it.key();
  }
  Json wrong_time = to_json(values::reservation());
  wrong_time["start"] = "tomorrow";
  EXPECT_FALSE(reservation_from_json(wrong_time));
}

TEST(Reservation, AGrantOfAnEarlierReleaseKeepsItsFingerprint) {
  Json old = to_json(values::reservation());
  old.erase("allowed_partitions");
  old.erase("qos");
  const Reservation read = reservation_from_json(old).value();
  EXPECT_EQ(fingerprint(read), digest_of(old)) << "as that release computed it";
  EXPECT_EQ(fingerprint(read), fingerprint(values::reservation()));
}

TEST(Grant, JsonRoundTrips) {
  const Grant before{"scale-48", "slurm", values::reservation(), "alice", values::kStart};
  const Grant after = grant_from_json(to_json(before)).value();
  EXPECT_EQ(to_json(after), to_json(before));
  EXPECT_FALSE(grant_from_json(Json::object()));
}

TEST(JobState, OnlyStatesThatNeverChangeAgainAreTerminal) {
  for (int i = 0; i <= static_cast<int>(JobState::unknown); ++i) {
    const auto state = static_cast<JobState>(i);
    const bool moving = state == JobState::pending || state == JobState::running ||
                        state == JobState::suspended || state == JobState::completing ||
                        state == JobState::unknown;
    EXPECT_EQ(is_terminal(state), !moving) << name_of(state);
  }
}

}  // namespace
}  // namespace qualify::scheduler
