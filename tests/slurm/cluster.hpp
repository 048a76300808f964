#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "qualify/scheduler/scheduler.hpp"
#include "support/temp_folder.hpp"

namespace qualify::test {

/// The cluster that this executable's tests run on; cluster_folder.cpp.
extern const char* const kClusterFolder;

/// What a program printed (both streams) and its exit code.
struct Printed {
  int code = 0;
  std::string text;
};
Printed run_program(const std::vector<std::string>& argv);

/// The cluster that CTest brought up, and its backend as qualify loads it. Removes at the end what
/// a test left: jobs, reservations, drained nodes, stopped daemons.
class ClusterTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  scheduler::Scheduler& slurm() { return *scheduler_; }
  /// One more, as another process would have it.
  static std::unique_ptr<scheduler::Scheduler> load_backend();
  const TempFolder& folder() { return folder_; }

  /// scontrol and friends; a failure fails the test.
  static std::string must(const std::vector<std::string>& argv);
  /// A grant-shaped reservation for root that has started; returns its name.
  std::string reserve(const std::string& nodes = "gpu[0001-0004]", const std::string& more = "",
                      const std::string& start = "now", int minutes = 60);
  /// One that ends soon: no engine starts anything there.
  std::string reserve_for_seconds(int seconds);
  /// A name that no other test has.
  std::string unique_name();
  /// Tells the last test, which counts, that jobs may run in this reservation as it is now.
  static void note_grant(const scheduler::Reservation& reservation);
  /// The reservation as the backend sees it; fails the test when it is not there.
  scheduler::Reservation reservation(const std::string& name);

  /// A request whose job runs `script` (POSIX shell) as its whole work.
  scheduler::JobRequest request(const std::string& reservation, const std::string& script);
  std::string submit(const scheduler::JobRequest& request);
  /// Asks until `done` holds or `seconds` have passed; returns the last answer.
  scheduler::Job wait(const std::string& nonce,
                      const std::function<bool(const scheduler::Job&)>& done, int seconds = 30);
  scheduler::Job wait_until_over(const std::string& nonce, int seconds = 30);

  /// Polls until `done` or the limit; fails the test then.
  static void wait_for(const std::function<bool()>& done, int seconds = 30);

  static std::map<std::string, std::string> cluster_environment();
  static std::filesystem::path cluster_folder();
  static std::uint16_t controller_port();
  /// A copy of the cluster's slurm.conf by which the controller is asked at another port.
  std::string configuration_with_port(std::uint16_t port);

  static void start_daemon(const std::string& name);
  static void stop_daemon(const std::string& name);  ///< it saves what it knows
  static void kill_daemon(const std::string& name);
  /// slurmctld's log from here on.
  std::string controller_log();

 private:
  void restore();

  bool own_configuration_ = false;  ///< configuration_with_port was asked for
  TempFolder folder_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::vector<std::string> reservations_;
  std::uintmax_t log_start_ = 0;
  int next_ = 0;
};

}  // namespace qualify::test
