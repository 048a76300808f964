#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster.hpp"
#include "qualify/ledger/signer.hpp"
#include "qualify/run/qualification.hpp"

namespace qualify::test {

/// The system's clock; between any two polls of the engine a test may do something.
class PollClock final : public Clock {
 public:
  Time now() const override { return clock_.now(); }
  void sleep_for(Duration duration) override {
    if (on_sleep) on_sleep();
    clock_.sleep_for(duration);
  }
  std::function<void()> on_sleep;

 private:
  SystemClock clock_;
};

/// A gate of two runs on nodes of the cluster, all four unless told otherwise, through the whole
/// engine and the real `qualify job`. The workload is one task a node, of arm "quick", or of arm
/// "held", which goes on when release() is called.
class GateTest : public ClusterTest {
 protected:
  void SetUp() override;
  virtual int nodes_of_a_run() const { return 4; }

  /// Grants the reservation, as it is now, to the gate.
  void grant(const std::string& name);
  /// The gate, to its end or to what stops it.
  Result<run::Outcome> run();
  /// Does something once, when the engine has recorded its first event of this kind: the engine
  /// waits meanwhile.
  void at(const std::string& kind, std::function<void()> what) { hooks_[kind] = std::move(what); }
  /// Does something once, before the n-th pause (from 1) after that event.
  void after(const std::string& kind, int pauses, std::function<void()> what);
  void release();
  /// The program as built.
  static std::string qualify_program();
  /// Until the workload of a run has begun.
  void wait_until_training(const std::string& run);
  /// Until the controller has saved a word in one of its state files: what it has not is lost when
  /// it is killed.
  static void wait_until_saved(const std::string& file, const std::string& word);
  /// Tells the last test that an operator takes this job out of its grant, as the story goes.
  static void note_taken_out(const std::string& job);
  /// Stops the engine (detached) once it has recorded an event of this kind.
  void stop_after(const std::string& kind);
  /// Attempt 1 of a run.
  std::filesystem::path attempt_folder(const std::string& run) const;

  /// Payloads of the events of a kind, in order.
  std::vector<Json> events(const std::string& kind) const;
  /// When the first event of a kind was recorded.
  Time time_of(const std::string& kind) const;
  /// Faults of the last preflight, by code.
  std::vector<std::string> fault_codes() const;
  /// Jobs that the controller took, by its own log, since the test began.
  std::size_t jobs_submitted();
  /// A job of somebody else's; returns its number.
  static std::string foreign_job(const std::vector<std::string>& options);
  static bool is_gone(const std::string& job);

  run::Request request;
  PollClock clock;
  run::Stop stop = run::Stop::none;
  run::Limits limits;

 private:
  std::optional<run::State> state_;
  std::unique_ptr<ledger::Signer> signer_;
  std::vector<journal::Event> events_;
  std::map<std::string, std::function<void()>> hooks_;
};

}  // namespace qualify::test
