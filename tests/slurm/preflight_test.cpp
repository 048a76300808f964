// What stands against a start, on the real controller: one test for every row of the table of
// reservation flags and shapes, and for every state of nodes, jobs and time. Nothing is submitted.
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gate.hpp"
#include "qualify/base/files.hpp"

namespace qualify::test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// A reservation of some flags or shape, and what makes it unfit.
struct Shape {
  const char* name;
  std::vector<std::string> options;  ///< of scontrol create reservation
  const char* fault;
};
void PrintTo(const Shape& shape, std::ostream* out) {
  *out << shape.name;
}

class ReservationShape : public GateTest, public ::testing::WithParamInterface<Shape> {};

TEST_P(ReservationShape, ThatCannotKeepThePromiseIsNamedAndNothingStarts) {
  std::vector<std::string> argv = {"scontrol",    "create",
                                   "reservation", "reservationname=" + unique_name(),
                                   "users=root",  "duration=120"};
  const std::string name = argv[3].substr(argv[3].find('=') + 1);
  const auto& options = GetParam().options;
  argv.insert(argv.end(), options.begin(), options.end());
  if (std::none_of(options.begin(), options.end(),
                   [](const std::string& option) { return option.starts_with("starttime="); })) {
    argv.emplace_back("starttime=now");
  }
  must(argv);
  const scheduler::Reservation seen = reservation(name);
  std::vector<std::string> messages;
  for (const scheduler::Fault& fault : unfit_for_grant(seen, slurm().nodes().value()))
    messages.push_back(fault.message);
  EXPECT_THAT(messages, Contains(HasSubstr(GetParam().fault)));
  // Even with a grant (of an earlier release, say) it is not used.
  request.grant.scheduler = "slurm";
  request.grant.reservation = seen;
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().describe(), HasSubstr(GetParam().fault));
  EXPECT_EQ(jobs_submitted(), 0u);
}

const std::string kAll = "nodes=gpu[0001-0004]";

INSTANTIATE_TEST_SUITE_P(
    Flags, ReservationShape,
    ::testing::Values(
        Shape{"NodeCountOnly", {"nodecnt=4"}, "neither SPEC_NODES nor STATIC"},
        Shape{"Replace", {"nodecnt=2", "flags=replace"}, "flag REPLACE"},
        Shape{"ReplaceDown", {"nodecnt=2", "flags=replace_down"}, "flag REPLACE_DOWN"},
        Shape{"Flex", {kAll, "flags=flex"}, "flag FLEX"},
        Shape{"NoHold", {kAll, "flags=no_hold_jobs_after_end"}, "flag NO_HOLD_JOBS_AFTER_END"},
        Shape{"Magnetic", {kAll, "flags=magnetic"}, "flag MAGNETIC"},
        Shape{"PurgeComp", {kAll, "flags=purge_comp=00:10:00"}, "flag PURGE_COMP"},
        Shape{"TimeFloat", {kAll, "flags=time_float", "starttime=now+1hour"}, "flag TIME_FLOAT"},
        Shape{"Hourly", {"duration=30", kAll, "flags=hourly"}, "flag HOURLY"},
        Shape{"Daily", {kAll, "flags=daily"}, "flag DAILY"},
        Shape{"Weekly", {kAll, "flags=weekly"}, "flag WEEKLY"},
        Shape{"Weekday", {kAll, "flags=weekday"}, "flag WEEKDAY"},
        Shape{"Weekend", {kAll, "flags=weekend"}, "flag WEEKEND"},
        Shape{"AnyNodes", {"licenses=matlab:1", "flags=any_nodes"}, "flag ANY_NODES"},
        Shape{
            "LicensesOnly", {"licenses=matlab:1", "flags=any_nodes"}, "holds no nodes of its own"},
        Shape{"PartialCores", {"nodes=gpu0001", "corecnt=8"}, "not whole nodes"}),
    [](const auto& shown) { return std::string(shown.param.name); });

using Preflight = GateTest;

TEST_F(Preflight, AReservationThatIsFitIsReady) {
  grant(reserve());
  EXPECT_THAT(unfit_for_grant(request.grant.reservation, slurm().nodes().value()), IsEmpty());
}

TEST_F(Preflight, ADrainedNodeIsNamedWithItsReason) {
  grant(reserve());
  must({"scontrol", "update", "nodename=gpu0002", "state=drain", "reason=bad NVLink"});
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::refused);
  EXPECT_THAT(outcome.error().describe(),
              AllOf(HasSubstr("node gpu0002 is drained: 'bad NVLink"), HasSubstr(" since "),
                    HasSubstr("24 of 32 GPUs usable")));
  EXPECT_EQ(jobs_submitted(), 0u);
}

TEST_F(Preflight, ADownNodeIsNamed) {
  grant(reserve());
  must({"scontrol", "update", "nodename=gpu0003", "state=down", "reason=fell off the bus"});
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().describe(), HasSubstr("node gpu0003 is down: 'fell off the bus"));
  EXPECT_EQ(jobs_submitted(), 0u);
}

TEST_F(Preflight, ANodeThatTheControllerDoesNotKnowIsNamed) {
  grant(reserve());
  request.grant.reservation.nodes.emplace_back("gpu0099");
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_THAT(fault_codes(), Contains("fingerprint-changed"));
  EXPECT_EQ(jobs_submitted(), 0u);
}

TEST_F(Preflight, AForeignJobOnANodeIsNamed) {
  const std::string job = foreign_job({"--nodelist=gpu0004"});
  wait_for([&] { return must({"squeue", "-h", "-j", job, "-o", "%T"}) == "RUNNING\n"; });
  grant(reserve("gpu[0001-0004]", "flags=ignore_jobs"));
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_THAT(fault_codes(), Contains("foreign-job"));
  EXPECT_THAT(outcome.error().describe(),
              AllOf(HasSubstr("job " + job), HasSubstr("gpu0004"), HasSubstr("user root")));
}

TEST_F(Preflight, AForeignJobThatWaitsForTheReservationIsNamed) {
  const std::string name = reserve();
  grant(name);
  const std::string job = foreign_job({"--reservation=" + name, "--nodes=4", "--hold"});
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_THAT(fault_codes(), Contains("foreign-job-waiting"));
}

TEST_F(Preflight, MaintenanceThatOverlapsIsNamed) {
  grant(reserve("gpu[0001-0004]", "", "now", 600));
  const std::string repair = reserve("gpu0002", "flags=maint,ignore_jobs,overlap", "now+4minutes");
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_THAT(fault_codes(), Contains("overlap"));
  EXPECT_THAT(outcome.error().describe(),
              AllOf(HasSubstr(repair + " (MAINT)"), HasSubstr("node gpu0002")));
}

TEST_F(Preflight, MaintenanceAfterThePlanDoesNotMatter) {
  grant(reserve("gpu[0001-0004]", "", "now", 600));
  reserve("gpu0002", "flags=maint,ignore_jobs,overlap", "now+120minutes");
  stop = run::Stop::detach;
  (void)run();
  EXPECT_THAT(fault_codes(), Not(Contains("overlap")));
}

struct Change {
  const char* name;
  std::vector<std::string> options;  ///< of scontrol update reservation
  const char* field;
};
void PrintTo(const Change& change, std::ostream* out) {
  *out << change.name;
}

class ReservationChange : public GateTest, public ::testing::WithParamInterface<Change> {};

TEST_P(ReservationChange, AfterTheGrantForbidsAStart) {
  const std::string name = reserve();
  grant(name);
  std::vector<std::string> argv = {"scontrol", "update", "reservation=" + name};
  argv.insert(argv.end(), GetParam().options.begin(), GetParam().options.end());
  must(argv);
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::refused);
  EXPECT_THAT(outcome.error().describe(),
              AllOf(HasSubstr("not what was granted"), HasSubstr(GetParam().field)));
  EXPECT_EQ(jobs_submitted(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Fields, ReservationChange,
                         ::testing::Values(Change{"Nodes", {"nodes=gpu[0001-0003]"}, "nodes was"},
                                           Change{"End", {"duration=90"}, "end was"},
                                           Change{"Users", {"users=root,nobody"}, "users was"},
                                           Change{"Flags", {"flags+=magnetic"}, "flags was"}),
                         [](const auto& shown) { return std::string(shown.param.name); });

TEST_F(Preflight, ADeletedReservationIsMissing) {
  const std::string name = reserve();
  grant(name);
  must({"scontrol", "delete", "reservation=" + name});
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_THAT(fault_codes(), ElementsAre("reservation-missing"));
  EXPECT_THAT(outcome.error().describe(), HasSubstr("not visible to you"));
  EXPECT_EQ(jobs_submitted(), 0u);
}

TEST_F(Preflight, AnotherReservationOfTheSameNameIsNotTheGrantedOne) {
  const std::string name = reserve();
  grant(name);
  must({"scontrol", "delete", "reservation=" + name});
  wait_for([&] { return slurm().now().value() > request.grant.reservation.start + 1s; });
  must({"scontrol", "create", "reservation", "reservationname=" + name, "starttime=now",
        "duration=60", "users=root", "nodes=gpu[0001-0004]"});
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_THAT(fault_codes(), Contains("fingerprint-changed"));
  EXPECT_THAT(outcome.error().describe(), HasSubstr("start was"));
  EXPECT_EQ(jobs_submitted(), 0u);
}

TEST_F(Preflight, APlanThatDoesNotFitIsTooLong) {
  grant(reserve("gpu[0001-0004]", "", "now", 10));
  ASSERT_FALSE(run());
  EXPECT_THAT(fault_codes(), ElementsAre("too-long"));
  EXPECT_EQ(jobs_submitted(), 0u);
}

TEST_F(Preflight, AReservationThatHasNotStartedIsWaitedForByNobodyHere) {
  grant(reserve("gpu[0001-0004]", "", "now+1hour"));
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_THAT(fault_codes(), ElementsAre("not-started"));
  EXPECT_THAT(outcome.error().describe(), HasSubstr("by the controller's clock"));
  EXPECT_EQ(jobs_submitted(), 0u);
}

TEST_F(Preflight, AllFaultsAreNamedAtOnce) {
  const std::string name = reserve("gpu[0001-0004]", "", "now+1hour", 10);
  grant(name);
  must({"scontrol", "update", "reservation=" + name, "flags+=flex"});
  must({"scontrol", "update", "nodename=gpu0001", "state=drain", "reason=fan"});
  must({"scontrol", "update", "nodename=gpu0003", "state=drain", "reason=cable"});
  reserve("gpu0002", "flags=maint,ignore_jobs,overlap", "now+62minutes");
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  for (const char* code : {"fingerprint-changed", "flag", "not-started", "too-long",
                           "node-unusable", "too-few-nodes", "overlap"}) {
    EXPECT_THAT(fault_codes(), Contains(code));
  }
  EXPECT_THAT(outcome.error().describe(),
              AllOf(HasSubstr("'fan"), HasSubstr("'cable"), HasSubstr("16 of 32 GPUs usable")));
}

}  // namespace
}  // namespace qualify::test
