#pragma once

#include <functional>
#include <memory>

#include "qualify/scheduler/scheduler.hpp"

/// A scripted cluster: no process is started, time is the clock's, and what happens to each job is
/// written down beforehand. For dry rehearsals of a Saturday night, and for tests.
namespace qualify::scheduler {

/// What becomes of one submission.
enum class Answer {
  accepted,     ///< the job exists, and the answer arrives
  refused,      ///< no job, and the answer says so
  lost_before,  ///< the request never arrived: no job, `unavailable`
  lost_after,   ///< the job exists, the answer is lost: `unavailable`
};

/// One job, from start to end.
struct FakeJob {
  Answer answer = Answer::accepted;
  Duration wait{};  ///< between submit (or the reservation's start, if later) and start
  Duration duration = std::chrono::seconds(60);
  Duration completing{};  ///< after its end, while its nodes are cleared
  JobState end = JobState::completed;
  int exit_code = 0;
  int signal = 0;
  std::string reason{};
};

/// A time in which the controller does not answer.
struct Outage {
  Time from;
  Time to;
};

struct FakeScript {
  std::vector<Reservation> reservations;
  std::vector<Node> nodes;
  std::vector<Job> foreign_jobs;
  std::vector<FakeJob> jobs;  ///< the n-th submit gets the n-th; the last one stands for all more
  std::vector<Outage> outages;
  Duration remembered = std::chrono::seconds(300);  ///< ended jobs, as Slurm's MinJobAge
  std::optional<Duration> accounting_lag;  ///< accounting knows things so late; nothing: has none
  std::vector<Outage> accounting_outages;  ///< when it does not answer
};

/// Reads a script. Times are RFC 3339, durations "90s"; members that are absent keep their default,
/// unknown ones are errors. Errors: invalid_input, with the member.
[[nodiscard]] Result<FakeScript> fake_script_from_json(const Json& json);

/// The cluster. The usual rules hold: a job waits for its reservation and for nodes that are usable
/// and free, ends (timeout) at its limit or the reservation's end, and is held when its reservation
/// goes while it waits. Its state depends on script, calls and clock only.
class Fake final : public Scheduler {
 public:
  /// Called once when a job starts and once when it ends, from within whichever call first sees it:
  /// a rehearsal lets it write what a run would leave.
  using Observer = std::function<void(const JobRequest&, const Job&)>;

  Fake(FakeScript script, Clock& clock, Observer observer = {});
  ~Fake() override;

  std::string kind() const override { return "fake"; }
  Result<std::string> describe() override;
  Result<Time> now() override;
  Result<std::vector<Reservation>> reservations() override;
  Result<std::vector<Node>> nodes() override;
  Result<std::vector<Job>> jobs() override;
  Result<void> would_accept(const JobRequest& request) override;
  Result<Submission> submit(const JobRequest& request) override;
  Result<std::vector<Job>> find(const std::string& nonce) override;
  Result<std::vector<Job>> accounted(const std::string& name, const std::string& nonce,
                                     Time since) override;
  Result<void> cancel(const std::string& job_id, const std::string& nonce) override;

  /// The operator's doings, between calls: change, delete or add what the controller holds.
  FakeScript& script();
  /// How often submit reached the controller, refusals included.
  [[nodiscard]] std::size_t submissions() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qualify::scheduler
