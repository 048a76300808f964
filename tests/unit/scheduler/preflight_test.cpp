#include <gmock/gmock.h>

#include "cluster_values.hpp"

namespace qualify::scheduler {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class Preflight : public ::testing::Test {
 protected:
  std::vector<Fault> faults() const { return preflight(grant, need, seen, {"mine"}); }
  std::vector<std::string> codes() const {
    std::vector<std::string> all;
    for (const Fault& fault : faults()) all.push_back(fault.code);
    return all;
  }
  static Job job_on(const std::string& node) {
    Job job;
    job.id = "77";
    job.name = "theirs";
    job.user = "bob";
    job.state = JobState::running;
    job.nodes = {node};
    return job;
  }

  Grant grant{"scale", "slurm", values::reservation(), "alice", values::kStart - 24h};
  Requirement need{4, 8, {}, 30min};
  Snapshot seen{values::kStart + 1min, {values::reservation()}, values::nodes(), {}};
};

TEST_F(Preflight, NothingIsWrongWithWhatWasGranted) {
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(Preflight, AMissingReservationMayBeAHiddenOne) {
  seen.reservations.clear();
  ASSERT_THAT(codes(), ElementsAre("reservation-missing"));
  EXPECT_THAT(faults()[0].message, HasSubstr("not visible to you"));
  EXPECT_FALSE(faults()[0].may_pass);
}

TEST_F(Preflight, AnyChangeAfterTheGrantIsNamedByField) {
  seen.reservations[0].users = {"bob"};
  ASSERT_THAT(codes(), ElementsAre("fingerprint-changed"));
  EXPECT_THAT(faults()[0].message, AllOf(HasSubstr("users"), HasSubstr("bob")));
}

TEST_F(Preflight, AReservationBoundToAQosIsNotWhatWasGrantedWithoutOne) {
  // A grant of a time when libslurm did not tell of it, too.
  seen.reservations[0].qos = {"urgent"};
  seen.reservations[0].allowed_partitions = {"batch"};
  ASSERT_THAT(codes(), ElementsAre("fingerprint-changed"));
  EXPECT_THAT(faults()[0].message,
              AllOf(HasSubstr("qos was [], is [\"urgent\"]"), HasSubstr("allowed_partitions")));
}

TEST_F(Preflight, AGrantedNodeThatLeftTheClusterIsNamed) {
  // As Slurm does: the reservation goes on without it.
  seen.nodes.pop_back();
  seen.reservations[0].nodes.pop_back();
  seen.reservations[0].node_count = 3;
  EXPECT_THAT(codes(), AllOf(Contains("node-missing"), Contains("fingerprint-changed")));
}

TEST_F(Preflight, RecreatedUnderTheSameNameIsAnotherReservation) {
  seen.reservations[0].start += 1s;
  EXPECT_THAT(codes(), Contains("fingerprint-changed"));
}

TEST_F(Preflight, NotYetStartedMayPass) {
  seen.now = values::kStart - 10min;
  ASSERT_THAT(codes(), ElementsAre("not-started"));
  EXPECT_TRUE(faults()[0].may_pass);
}

TEST_F(Preflight, EndedDoesNotPass) {
  seen.now = values::kStart + 1h;
  ASSERT_THAT(codes(), ElementsAre("ended"));
  EXPECT_FALSE(faults()[0].may_pass);
}

TEST_F(Preflight, ThePlanMustFitToTheMicrosecond) {
  need.duration = 59min;
  EXPECT_THAT(codes(), IsEmpty());
  need.duration += 1us;
  EXPECT_THAT(codes(), ElementsAre("too-long"));
}

TEST_F(Preflight, ADrainedNodeIsNamedWithReasonAndTime) {
  Node& node = seen.nodes[2];
  node.usable = false;
  node.state = "IDLE+DRAIN";
  node.reason = "bad NVLink";
  node.reason_time = values::kStart;
  const auto all = faults();
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].message, "node gpu0003 is drained: 'bad NVLink' since 2026-01-01T00:00:00Z");
  EXPECT_EQ(all[1].message, "24 of 32 GPUs usable");
  EXPECT_TRUE(all[0].may_pass && all[1].may_pass);
}

TEST_F(Preflight, ABrokenNodeToSpareIsNoFaultUnlessItIsPinned) {
  seen.nodes[2].usable = false;
  need.nodes = 3;
  EXPECT_THAT(codes(), IsEmpty());
  need.pinned_nodes = {"gpu0001", "gpu0002", "gpu0003"};
  EXPECT_THAT(codes(), ElementsAre("node-unusable"));
}

TEST_F(Preflight, APinnedNodeOutsideIsNamed) {
  need.nodes = 1;
  need.pinned_nodes = {"gpu0009"};
  EXPECT_THAT(codes(), ElementsAre("node-outside"));
}

TEST_F(Preflight, ANodeThatTheControllerDoesNotKnowIsMissing) {
  seen.nodes.pop_back();
  EXPECT_THAT(codes(), UnorderedElementsAre("node-missing", "too-few-nodes"));
}

TEST_F(Preflight, GpusAreCountedByNode) {
  seen.nodes[0].gpus = 7;
  EXPECT_THAT(codes(), UnorderedElementsAre("too-few-gpus", "too-few-nodes"));
}

TEST_F(Preflight, AForeignJobOnANodeIsNamedAndOursIsNot) {
  seen.jobs = {job_on("gpu0002")};
  ASSERT_THAT(codes(), ElementsAre("foreign-job"));
  EXPECT_THAT(faults()[0].message, AllOf(HasSubstr("77"), HasSubstr("bob"), HasSubstr("gpu0002")));
  seen.jobs[0].state = JobState::completing;
  EXPECT_THAT(codes(), ElementsAre("foreign-job"));
  seen.jobs[0].nonce = "mine";
  EXPECT_THAT(codes(), IsEmpty());
  seen.jobs = {job_on("gpu0009")};
  EXPECT_THAT(codes(), IsEmpty());
  seen.jobs = {job_on("gpu0002")};
  seen.jobs[0].state = JobState::completed;
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(Preflight, AForeignJobThatWaitsForTheReservationCouldStartFirst) {
  Job job = job_on("gpu0001");
  job.state = JobState::pending;
  job.nodes.clear();
  job.reservation = "other,sat-night";
  seen.jobs = {job};
  EXPECT_THAT(codes(), ElementsAre("foreign-job-waiting"));
  seen.jobs[0].reservation = "sat-night-2";
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(Preflight, AnOverlapCountsOnlyOnOurNodesAndInOurTime) {
  Reservation other = values::reservation();
  other.name = "maintenance";
  other.flags = {"MAINT", "SPEC_NODES"};
  other.nodes = {"gpu0004", "gpu0005"};
  other.start = values::kStart + 20min;
  seen.reservations.push_back(other);
  ASSERT_THAT(codes(), ElementsAre("overlap"));
  EXPECT_THAT(faults()[0].message, AllOf(HasSubstr("maintenance (MAINT)"), HasSubstr("gpu0004")));
  seen.reservations[1].start = values::kStart + 31min;  // the plan ends then
  EXPECT_THAT(codes(), IsEmpty());
  seen.reservations[1].start = values::kStart;
  seen.reservations[1].nodes = {"gpu0005"};
  EXPECT_THAT(codes(), IsEmpty());
}

TEST_F(Preflight, NoFaultHidesAnother) {
  seen.reservations[0].flags = {"FLEX", "SPEC_NODES"};
  seen.nodes[0].usable = false;
  seen.jobs = {job_on("gpu0002")};
  need.duration = 2h;
  EXPECT_THAT(codes(), UnorderedElementsAre("fingerprint-changed", "flag", "too-long",
                                            "node-unusable", "too-few-nodes", "foreign-job"));
}

TEST(UnfitForGrant, EveryShapeThatCannotKeepThePromiseIsRefused) {
  EXPECT_THAT(unfit_for_grant(values::reservation(), {}), IsEmpty());
  for (const char* flag :
       {"REPLACE", "REPLACE_DOWN", "FLEX", "NO_HOLD_JOBS_AFTER_END", "MAGNETIC", "PURGE_COMP",
        "TIME_FLOAT", "HOURLY", "DAILY", "WEEKLY", "WEEKDAY", "WEEKEND", "SKIP", "ANY_NODES",
        "FIRST_CORES", "PARTIAL_CORES", "BIT_41"}) {
    Reservation bad = values::reservation();
    bad.flags.emplace_back(flag);
    const auto faults = unfit_for_grant(bad, {});
    ASSERT_THAT(faults, SizeIs(1)) << flag;
    EXPECT_EQ(faults[0].code, "flag");
    EXPECT_THAT(faults[0].message, HasSubstr(flag));
  }
}

TEST(UnfitForGrant, HarmlessFlagsAreNot) {
  for (const char* flag : {"IGNORE_JOBS", "OVERLAP", "PART_NODES"}) {
    Reservation fine = values::reservation();
    fine.flags.emplace_back(flag);
    EXPECT_THAT(unfit_for_grant(fine, {}), IsEmpty()) << flag;
  }
}

TEST(UnfitForGrant, NodesMustBePinnedThereAndNamed) {
  Reservation loose = values::reservation();
  loose.flags.clear();
  EXPECT_THAT(unfit_for_grant(loose, {}), ElementsAre(Field(&Fault::code, "not-pinned")));
  loose.flags = {"STATIC"};
  EXPECT_THAT(unfit_for_grant(loose, {}), IsEmpty());
  Reservation empty = values::reservation();
  empty.nodes.clear();
  EXPECT_THAT(unfit_for_grant(empty, {}), ElementsAre(Field(&Fault::code, "no-nodes")));
  Reservation list = values::reservation();
  list.name = "a,b";
  EXPECT_THAT(unfit_for_grant(list, {}), ElementsAre(Field(&Fault::code, "name")));
}

}  // namespace
}  // namespace qualify::scheduler
