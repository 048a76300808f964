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

/// A cluster whose configuration a test may change; put back at the end.
class Reconfigured : public GateTest {
 protected:
  void restart_with(const std::string& from, const std::string& to) {
    stop_daemon("slurmctld");
    const fs::path file = cluster_folder() / "slurm.conf";
    if (whole_.empty()) whole_ = read_file(file).value();
    std::string text = whole_;
    ASSERT_NE(text.find(from), std::string::npos);
    text.replace(text.find(from), from.size(), to);
    ASSERT_TRUE(write_file_atomic(file, text, 0644));
    start_daemon("slurmctld");
    wait_for([&] { return slurm().now().has_value(); });
  }
  /// The start of the configuration's line of the first `count` nodes, as slurm-cluster writes it.
  static std::string node_line(int count) {
    const int first = controller_port() + 8;
    const std::string host = must({"hostname", "-s"});
    return "NodeName=gpu[0001-000" + std::to_string(count) +
           "] NodeHostname=" + host.substr(0, host.find('\n')) + " NodeAddr=127.0.0.1 Port=[" +
           std::to_string(first) + "-" + std::to_string(first + count - 1) + "]";
  }
  void TearDown() override {
    if (!whole_.empty()) {
      if (run_program({"scontrol", "ping"}).text.find("is UP") != std::string::npos) {
        stop_daemon("slurmctld");
      }
      EXPECT_TRUE(write_file_atomic(cluster_folder() / "slurm.conf", whole_, 0644));
      start_daemon("slurmctld");
    }
    GateTest::TearDown();
  }

 private:
  std::string whole_;
};

TEST_F(Reconfigured, ANodeThatLeftTheClusterAfterTheGrantIsNamed) {
  const std::string name = reserve();
  grant(name);
  wait_until_saved("resv_state", name);
  // As many ports as nodes: the first three stay as they are.
  restart_with(node_line(4), node_line(3));
  ASSERT_THAT(slurm().nodes().value(), ::testing::SizeIs(3));
  EXPECT_THAT(reservation(name).nodes, ElementsAre("gpu0001", "gpu0002", "gpu0003"))
      << "Slurm itself takes it out of the reservation";
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_THAT(fault_codes(), Contains("node-missing"));
  EXPECT_THAT(fault_codes(), Contains("fingerprint-changed"));
  EXPECT_THAT(outcome.error().describe(),
              HasSubstr("node gpu0004, which was granted, is not in the cluster any more"));
  EXPECT_EQ(jobs_submitted(), 0u);
}

TEST_F(Preflight, AWrongMungeKeyIsSaidAndNothingIsConcluded) {
  grant(reserve());
  // Another munged, with a key that the controller does not have.
  const fs::path other = cluster_folder() / "other-munge";
  fs::create_directories(other);
  fs::permissions(other, fs::perms(0755));
  ASSERT_TRUE(write_file_atomic(other / "key", std::string(128, 'k'), 0600));
  const auto file = [&](const char* name) { return (other / name).string(); };
  must({"env", "QUALIFY_SLURM_CLUSTER_DIR=" + cluster_folder().string(), "munged", "--force",
        "--socket=" + file("socket"), "--key-file=" + file("key"), "--pid-file=" + file("pid"),
        "--log-file=" + file("log"), "--seed-file=" + file("seed")});
  std::string text = read_file(cluster_folder() / "slurm.conf").value();
  const std::string socket = (cluster_folder() / "munge" / "socket").string();
  for (std::size_t at = text.find(socket); at != std::string::npos; at = text.find(socket, at)) {
    text.replace(at, socket.size(), file("socket"));
    at += file("socket").size();
  }
  ASSERT_TRUE(write_file_atomic(cluster_folder() / "other.conf", text, 0644));
  const Printed said = run_program(
      {"env", "SLURM_CONF=" + (cluster_folder() / "other.conf").string(), qualify_program(),
       "reservation", "list", "--state", (folder() / "state").string()});
  const std::string pid = read_file(other / "pid").value();
  must({"kill", pid.substr(0, pid.find('\n'))});
  wait_for([&] { return !fs::exists(other / "pid"); });
  fs::remove_all(other);
  EXPECT_EQ(said.code, 4) << said.text;
  EXPECT_THAT(said.text, AllOf(HasSubstr("munge: cannot read the reservations"),
                               HasSubstr("with the controller's key and clock")));
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
