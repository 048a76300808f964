// Kills the engine with -9 at every point of a run, one after the other, and lets a second process
// go on: no run may be lost, none doubled, and the verdict must be that of an undisturbed run.
//
// (It found that an engine killed just after it had withdrawn a lost submission took its own
// withdrawal for a job's claim, and gave the run up.)
//
// A point is every call of a scheduler (before it arrives, and after it had its effect but before
// the answer), every event of the journal (before and after), every look at the clock or at the
// stop flag, and every signature. They are counted as they come: nothing here lists them.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "qualify/run/evidence.hpp"
#include "qualify/run/job_plan.hpp"
#include "qualify/run/qualification.hpp"
#include "qualify/run/sentinel.hpp"
#include "qualify/scheduler/fake.hpp"
#include "support/engine.hpp"
#include "support/fake_clock.hpp"
#include "support/temp_folder.hpp"

namespace qualify::run {
namespace {

using namespace std::chrono_literals;
using scheduler::Answer;
using scheduler::FakeJob;
using scheduler::JobState;

/// What outlives a killed process: the cluster's memory of what it was asked, and the time.
/// In memory shared with all children; written by one process at a time.
struct World {
  struct Call {
    enum class Kind { submit, cancel } kind;
    std::int64_t time;  ///< microseconds since the epoch
    char argument[1024];
  };
  std::int64_t time;
  std::size_t calls;
  Call call[64];

  void record(Call::Kind kind, Time now, const std::string& argument) {
    if (calls == std::size(call) || argument.size() >= sizeof call[0].argument) ::_exit(70);
    call[calls].kind = kind;
    call[calls].time = now.time_since_epoch().count();
    std::memcpy(call[calls].argument, argument.c_str(), argument.size() + 1);
    ++calls;  // beyond this point the cluster has heard it
  }
};

/// Counts points, and ends the process at the one that it is told.
class Fate {
 public:
  explicit Fate(long kill_at) : kill_at_(kill_at) {}
  void point() {
    if (++passed_ == kill_at_) ::kill(::getpid(), SIGKILL);
  }
  [[nodiscard]] long passed() const { return passed_; }

 private:
  long passed_ = 0;
  long kill_at_;  ///< 0: never
};

class FatefulClock final : public Clock {
 public:
  FatefulClock(World& world, Fate& fate) : world_(world), fate_(fate) {}
  Time now() const override {
    fate_.point();
    return Time(Duration(world_.time));
  }
  void sleep_for(Duration duration) override {
    fate_.point();
    world_.time += duration.count();
  }

 private:
  World& world_;
  Fate& fate_;
};

class FatefulSigner final : public ledger::Signer {
 public:
  FatefulSigner(std::unique_ptr<ledger::Signer> key, Fate& fate)
      : key_(std::move(key)), fate_(fate) {}
  const ledger::PublicKey& public_key() const override { return key_->public_key(); }
  Result<std::string> sign(std::string_view message) const override {
    fate_.point();
    return key_->sign(message);
  }

 private:
  std::unique_ptr<ledger::Signer> key_;
  Fate& fate_;
};

Json to_json(const scheduler::JobRequest& request) {
  return {{"nonce", request.nonce},
          {"name", request.name},
          {"plan_file", request.plan_file},
          {"reservation", request.reservation},
          {"limit", request.time_limit.count()}};
}

scheduler::JobRequest request_from(const char* text) {
  const Json json = Json::parse(text);
  scheduler::JobRequest request;
  request.nonce = json.at("nonce");
  request.name = json.at("name");
  request.plan_file = json.at("plan_file");
  request.reservation = json.at("reservation");
  request.time_limit = Duration(json.at("limit").get<Duration::rep>());
  return request;
}

/// A fake cluster that does not forget when the process that talks to it dies: what it was asked is
/// kept in the World and asked again of a new one, at the same times.
class LastingCluster final : public scheduler::Scheduler {
  template <class Call>
  auto ask(Call&& call) {
    fate_.point();  // it never arrived
    clock_.set(Time(Duration(world_.time)));
    auto answer = call();
    fate_.point();  // it arrived, and nobody heard the answer
    return answer;
  }

 public:
  LastingCluster(scheduler::FakeScript script, World& world, Fate& fate,
                 scheduler::Fake::Observer observer)
      : world_(world), fate_(fate), fake_(std::move(script), clock_, std::move(observer)) {
    for (std::size_t i = 0; i < world.calls; ++i) {
      const World::Call& call = world.call[i];
      clock_.set(Time(Duration(call.time)));
      if (call.kind == World::Call::Kind::submit) {
        (void)fake_.submit(request_from(call.argument));
      } else {
        const std::string words = call.argument;
        const std::size_t space = words.find(' ');
        (void)fake_.cancel(words.substr(0, space), words.substr(space + 1));
      }
    }
  }

  std::string kind() const override { return "fake"; }
  Result<std::string> describe() override {
    return ask([&] { return fake_.describe(); });
  }
  Result<Time> now() override {
    return ask([&] { return fake_.now(); });
  }
  Result<std::vector<scheduler::Reservation>> reservations() override {
    return ask([&] { return fake_.reservations(); });
  }
  Result<std::vector<scheduler::Node>> nodes() override {
    return ask([&] { return fake_.nodes(); });
  }
  Result<std::vector<scheduler::Job>> jobs() override {
    return ask([&] { return fake_.jobs(); });
  }
  Result<std::vector<scheduler::Job>> find(const std::string& nonce) override {
    return ask([&] { return fake_.find(nonce); });
  }
  Result<scheduler::Submission> submit(const scheduler::JobRequest& request) override {
    return ask([&] {
      world_.record(World::Call::Kind::submit, clock_.now(), to_json(request).dump());
      return fake_.submit(request);
    });
  }
  Result<void> would_accept(const scheduler::JobRequest& request) override {
    return ask([&] { return fake_.would_accept(request); });
  }
  Result<void> cancel(const std::string& job_id, const std::string& nonce) override {
    return ask([&] {
      world_.record(World::Call::Kind::cancel, clock_.now(), job_id + " " + nonce);
      return fake_.cancel(job_id, nonce);
    });
  }

 private:
  World& world_;
  Fate& fate_;
  test::FakeClock clock_;  ///< the controller's
  scheduler::Fake fake_;
};

/// What happens to the jobs, and what a run comes to when nobody is killed.
struct Scenario {
  const char* name;
  std::vector<FakeJob> jobs;
  policy::Verdict verdict;
  bool runs_differ;
  policy::Allocation allocation = policy::Allocation::separate;
  Duration heartbeat{};
  bool completes = true;
};

/// Two seconds long: every further second only adds polls like those before.
FakeJob good() {
  FakeJob job;
  job.duration = 2s;
  return job;
}
void PrintTo(const Scenario& scenario, std::ostream* out) {
  *out << scenario.name;
}

FakeJob answered(Answer answer) {
  FakeJob job = good();
  job.answer = answer;
  return job;
}
FakeJob ends_as(JobState end) {
  FakeJob job = good();
  job.end = end;
  return job;
}
FakeJob lasts(Duration duration) {
  FakeJob job;
  job.duration = duration;
  return job;
}
FakeJob waits(Duration wait) {
  FakeJob job = good();
  job.wait = wait;
  return job;
}

/// What a job writes when it ends, once.
void leave(const scheduler::JobRequest& request, const scheduler::Job& job, bool differ) {
  if (job.state != JobState::completed) return;
  for (const JobPlan& plan : test::plans_of(request)) {
    const bool b = plan.run == "b";
    test::write_result(
        plan, job, *job.end_time,
        test::metrics_line(*job.end_time + Duration(b ? 1 : 0), differ && b ? "6a" : "69"));
  }
}

class CrashPoints : public ::testing::TestWithParam<Scenario> {
 protected:
  void SetUp() override {
    void* shared =
        ::mmap(nullptr, sizeof(World), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    world = static_cast<World*>(shared);

    // Sealed and keyed once; every life begins with a copy.
    request.bundle = test::make_state(folder.path());
    request.gate = test::repeat_gate();
    request.gate.allocation = GetParam().allocation;
    request.gate.heartbeat = GetParam().heartbeat;
    request.grant = test::grant_of(test::night(start - 1min, start + 12h));
  }
  void TearDown() override { ::munmap(world, sizeof(World)); }

  scheduler::FakeScript script() const {
    scheduler::FakeScript script = test::cluster_of(request.grant.reservation);
    script.jobs = GetParam().jobs;
    return script;
  }

  void begin_life() {
    std::error_code error;
    fs::remove_all(folder / "life", error);
    fs::copy(folder / "state", folder / "life", fs::copy_options::recursive, error);
    ASSERT_FALSE(error) << error.message();
    world->time = start.time_since_epoch().count();
    world->calls = 0;
  }

  /// The whole command, in a process of its own. Returns its wait status; exit code 0 = a verdict.
  int qualify(long kill_at) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(engine(kill_at));
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }

  int engine(long kill_at) {
    Fate fate(kill_at);
    auto state = open_state(folder / "life");
    if (!state) {
      std::fprintf(stderr, "%s\n", state.error().describe().c_str());
      return 80;
    }
    FatefulClock clock(*world, fate);
    const FatefulSigner signer(ledger::load_key(state->paths.signing_key()).value(), fate);
    LastingCluster cluster(script(), *world, fate, [](const auto& job_request, const auto& job) {
      leave(job_request, job, GetParam().runs_differ);
    });
    const Ports ports{cluster,
                      signer,
                      clock,
                      [&] {
                        fate.point();
                        return Stop::none;
                      },
                      [&](const journal::Event&) { fate.point(); },
                      "/usr/bin/qualify",
                      {}};
    const auto outcome = qualify_gate(*state, request, ports);
    if (!outcome) {
      std::fprintf(stderr, "%s\n", outcome.error().describe().c_str());
      return 81;
    }
    return 0;
  }

  /// The state as it must be after the end, however often the engine died on the way.
  void expect_whole() {
    auto state = open_state(folder / "life");
    ASSERT_TRUE(state) << state.error().describe();
    const journal::Journal journal(state->database);
    ASSERT_EQ(journal.qualifications("repeat").value().size(), 1U);
    const auto whole = derive(journal.events("repeat-1").value());
    ASSERT_TRUE(whole) << whole.error().describe();
    EXPECT_EQ(whole->verdict, GetParam().verdict) << ::testing::PrintToString(whole->reasons);
    EXPECT_EQ(whole->certificate.empty(), GetParam().verdict != policy::Verdict::pass);
    const ledger::Ledger ledger(state->database);
    EXPECT_EQ(ledger.records(ledger::RecordKind::certificate).value().size(),
              GetParam().verdict == policy::Verdict::pass ? 1U : 0U);

    std::map<std::string, int> submitted;
    for (std::size_t i = 0; i < world->calls; ++i) {
      if (world->call[i].kind == World::Call::Kind::submit) {
        ++submitted[request_from(world->call[i].argument).nonce];
      }
    }
    for (const auto& [nonce, times] : submitted) EXPECT_EQ(times, 1) << nonce;
    ASSERT_EQ(whole->runs.size(), 2U);
    for (const RunState& run : whole->runs) {
      int complete = 0;
      for (const Attempt& attempt : run.attempts) {
        EXPECT_TRUE(attempt.ended);
        EXPECT_EQ(complete, 0) << "run " << run.run.id << " was run again after it was complete";
        complete += attempt.complete ? 1 : 0;
        submitted.erase(attempt.nonce);
      }
      EXPECT_EQ(complete, GetParam().completes ? 1 : 0) << "run " << run.run.id;
      ASSERT_TRUE(run.evidence);
      const auto evidence = verify_evidence(state->evidence, *run.evidence);
      EXPECT_TRUE(evidence) << evidence.error().describe();
    }
    EXPECT_TRUE(submitted.empty()) << "a job that no attempt knows";
  }

  test::TempFolder folder{test::memory_folder()};
  World* world = nullptr;
  const Time start{std::chrono::seconds(1767225600)};
  Request request;
};

TEST_P(CrashPoints, AreAllSurvived) {
  long points = 0;
  for (bool reached = true; reached;) {
    ++points;
    begin_life();
    const int first = qualify(points);
    reached = WIFSIGNALED(first) && WTERMSIG(first) == SIGKILL;
    if (reached) {
      const int second = qualify(0);
      ASSERT_TRUE(WIFEXITED(second) && WEXITSTATUS(second) == 0)
          << "killed at point " << points << ", could not go on: status " << second;
    } else {
      ASSERT_TRUE(WIFEXITED(first) && WEXITSTATUS(first) == 0) << "status " << first;
    }
    expect_whole();
    ASSERT_FALSE(HasFailure()) << "killed at point " << points;
  }
  RecordProperty("points", std::to_string(points - 1));
  EXPECT_GT(points, 100) << "points were lost";
}

/// A machine that keeps dying: every process is killed a little later than the one before it.
TEST_P(CrashPoints, AreSurvivedInARow) {
  begin_life();
  int lives = 0;
  for (long point = 5;; point += 7) {
    const int status = qualify(point);
    ++lives;
    if (WIFEXITED(status)) {
      ASSERT_EQ(WEXITSTATUS(status), 0);
      break;
    }
    ASSERT_LT(lives, 1000) << "no progress";
  }
  EXPECT_GT(lives, 3);
  expect_whole();
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios, CrashPoints,
    ::testing::Values(
        Scenario{"Equal", {good()}, policy::Verdict::pass, false},
        Scenario{"Different", {good()}, policy::Verdict::fail, true},
        Scenario{
            "NodeFailure", {ends_as(JobState::node_fail), good()}, policy::Verdict::pass, false},
        Scenario{
            "AnswerLost", {answered(Answer::lost_after), good()}, policy::Verdict::pass, false},
        Scenario{
            "RequestLost", {answered(Answer::lost_before), good()}, policy::Verdict::pass, false},
        Scenario{"Waiting", {waits(3s), good()}, policy::Verdict::pass, false},
        Scenario{"OneAllocation", {good()}, policy::Verdict::pass, false, policy::Allocation::same},
        Scenario{"Hung",
                 {lasts(1min)},
                 policy::Verdict::inconclusive,
                 false,
                 policy::Allocation::separate,
                 3s,
                 false}),
    [](const auto& scenario) { return std::string(scenario.param.name); });

}  // namespace
}  // namespace qualify::run
