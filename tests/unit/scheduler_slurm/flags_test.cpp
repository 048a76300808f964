// Every flag that a controller of any release from 22.05 to 26.05 can put on a reservation: what it
// is called here and whether a reservation with it can be granted. The bits are those of the
// releases' public slurm.h, and not of the one that is built against: a controller may be newer.
#include <gmock/gmock.h>

#include <bit>

#include "convert.hpp"
#include "qualify/scheduler/grant.hpp"

namespace qualify::scheduler::slurm {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

enum class Decision { granted, refused, left_out };
struct Flag {
  int bit;
  const char* macro;  ///< without RESERVE_
  const char* name;   ///< as scontrol shows it
  Decision decision;
  int since;  ///< release, 2205 or the first that has it
  int until;  ///< the last that has it
};
constexpr Flag kFlags[] = {
    {0, "FLAG_MAINT", "MAINT", Decision::granted, 2205, 2605},
    {2, "FLAG_DAILY", "DAILY", Decision::refused, 2205, 2605},
    {4, "FLAG_WEEKLY", "WEEKLY", Decision::refused, 2205, 2605},
    {6, "FLAG_IGN_JOBS", "IGNORE_JOBS", Decision::granted, 2205, 2605},
    {8, "FLAG_ANY_NODES", "ANY_NODES", Decision::refused, 2205, 2605},
    {10, "FLAG_STATIC", "STATIC", Decision::granted, 2205, 2605},
    {12, "FLAG_PART_NODES", "PART_NODES", Decision::granted, 2205, 2605},
    {14, "FLAG_OVERLAP", "OVERLAP", Decision::granted, 2205, 2605},
    {15, "FLAG_SPEC_NODES", "SPEC_NODES", Decision::granted, 2205, 2605},
    {16, "FLAG_FIRST_CORES", "FIRST_CORES", Decision::refused, 2205, 2302},
    {17, "FLAG_TIME_FLOAT", "TIME_FLOAT", Decision::refused, 2205, 2605},
    {18, "FLAG_REPLACE", "REPLACE", Decision::refused, 2205, 2605},
    {19, "FLAG_ALL_NODES", "ALL_NODES", Decision::granted, 2205, 2605},
    {20, "FLAG_PURGE_COMP", "PURGE_COMP", Decision::refused, 2205, 2605},
    {21, "FLAG_WEEKDAY", "WEEKDAY", Decision::refused, 2205, 2605},
    {23, "FLAG_WEEKEND", "WEEKEND", Decision::refused, 2205, 2605},
    {25, "FLAG_FLEX", "FLEX", Decision::refused, 2205, 2605},
    {29, "FLAG_NO_HOLD_JOBS", "NO_HOLD_JOBS_AFTER_END", Decision::refused, 2205, 2605},
    {30, "FLAG_REPLACE_DOWN", "REPLACE_DOWN", Decision::refused, 2205, 2605},
    {32, "FLAG_MAGNETIC", "MAGNETIC", Decision::refused, 2205, 2605},
    {34, "FLAG_SKIP", "SKIP", Decision::refused, 2205, 2605},
    {35, "FLAG_HOURLY", "HOURLY", Decision::refused, 2205, 2605},
    // Refused here, where nothing says that it holds all GPUs and cores of its nodes.
    {37, "FLAG_GRES_REQ", "GRES_REQ", Decision::refused, 2311, 2605},
    {38, "TRES_PER_NODE", "TRES_PER_NODE", Decision::granted, 2311, 2605},
    {39, "FLAG_USER_DEL", "USER_DELETE", Decision::granted, 2405, 2605},
    {41, "FLAG_SCHED_FAILED", nullptr, Decision::left_out, 2411, 2605},
    {42, "FLAG_FORCE_START", "FORCE_START", Decision::granted, 2505, 2605}};
constexpr int kReleases[] = {2205, 2302, 2311, 2405, 2411, 2505, 2511, 2605};
/// SPEC_NODES: pinned, so that only the flag itself speaks against a grant.
constexpr std::uint64_t kPinned = std::uint64_t{1} << 15;

Reservation with(std::uint64_t flags) {
  reserve_info_t record{};
  std::string name = "night";
  record.name = name.data();
  std::string nodes = "gpu[0001-0002]";
  record.node_list = nodes.data();
  record.node_cnt = 2;
  record.flags = flags;
  return to_reservation(record);
}

std::vector<Node> nodes() {
  std::vector<Node> list(2);
  list[0].name = "gpu0001";
  list[1].name = "gpu0002";
  for (Node& node : list) {
    node.cores = 64;
    node.gpus = 8;
  }
  return list;
}

class ReservationFlags : public ::testing::TestWithParam<int> {};

TEST_P(ReservationFlags, EachHasANameAndADecision) {
  const int release = GetParam();
  for (const Flag& flag : kFlags) {
    if (release < flag.since || release > flag.until) continue;
    SCOPED_TRACE(flag.macro);
    const Reservation seen = with(std::uint64_t{1} << flag.bit | kPinned);
    EXPECT_THAT(seen.flags, Not(Contains(HasSubstr("BIT_"))));
    if (flag.name != nullptr) {
      EXPECT_THAT(seen.flags, Contains(flag.name));
    }
    const auto faults = unfit_for_grant(seen, nodes());
    if (flag.decision == Decision::refused) {
      EXPECT_THAT(faults, Not(IsEmpty()));
    } else {
      EXPECT_THAT(faults, IsEmpty()) << faults.front().message;
    }
    if (flag.decision == Decision::left_out) {
      EXPECT_EQ(fingerprint(seen), fingerprint(with(kPinned)));
    } else if (flag.bit != std::countr_zero(kPinned)) {
      EXPECT_NE(fingerprint(seen), fingerprint(with(kPinned)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Slurm, ReservationFlags, ::testing::ValuesIn(kReleases));

TEST(ReservationFlag, ThatNobodyKnowsIsPartOfTheFingerprintAndRefused) {
  const Reservation seen = with(std::uint64_t{1} << 50 | kPinned);
  EXPECT_THAT(seen.flags, Contains("BIT_50"));
  EXPECT_NE(fingerprint(seen), fingerprint(with(kPinned)));
  const auto faults = unfit_for_grant(seen, nodes());
  ASSERT_FALSE(faults.empty());
  EXPECT_THAT(faults[0].message, HasSubstr("BIT_50 of this Slurm release is not known"));
}

struct Held {
  std::uint32_t cores;
  const char* tres;
  const char* fault;  ///< null: granted
};

TEST(ReservationByGpus, IsGrantedOnlyWhereItHoldsItsNodesWhole) {
  constexpr std::uint64_t kByGpus = std::uint64_t{1} << 37 | std::uint64_t{1} << 38 | kPinned;
  constexpr Held kCases[] = {{128, "cpu=128,gres/gpu=16", nullptr},
                             {128, "cpu=128,gres/gpu=16,gres/gpu:h200=16", nullptr},
                             {128, "cpu=128,gres/gpu=15", "15 of the 16 GPUs"},
                             {128, "cpu=128,gres/gpu:h200=16", "0 of the 16 GPUs"},
                             {32, "cpu=32,gres/gpu=16", "32 of the 128 cores"},
                             {0, "gres/gpu=16", "0 of the 128 cores"}};
  for (const Held& held : kCases) {
    Reservation seen = with(kByGpus);
    seen.core_count = held.cores;
    seen.tres = held.tres;
    const auto faults = unfit_for_grant(seen, nodes());
    if (held.fault == nullptr) {
      EXPECT_THAT(faults, IsEmpty()) << held.tres;
    } else {
      ASSERT_FALSE(faults.empty()) << held.tres;
      EXPECT_THAT(faults[0].message, HasSubstr(held.fault));
    }
  }
  // What the nodes have is not known: nothing is proven.
  Reservation seen = with(kByGpus);
  seen.core_count = 128;
  seen.tres = "gres/gpu=16";
  EXPECT_THAT(unfit_for_grant(seen, {}), Not(IsEmpty()));
}

}  // namespace
}  // namespace qualify::scheduler::slurm
