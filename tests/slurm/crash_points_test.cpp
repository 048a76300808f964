// Kills the engine with -9 at a sample of its points on a real controller, and lets a second
// process go on: each run must exist exactly once by the controller's own record, its evidence be
// whole, and the verdict that of an undisturbed run. tests/unit/run/crash_points_test.cpp does so
// at every point on a fake one.
//
// A point is each call of the scheduler (before it is made, and after it had its effect but before
// anybody heard of it), each event of the journal, each signature and each pause. An undisturbed
// run finds them. Four lives go on at a time, each in a reservation of one node of its own.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "cluster.hpp"
#include "gate.hpp"
#include "qualify/base/files.hpp"
#include "qualify/run/evidence.hpp"
#include "qualify/scheduler/module.hpp"

namespace qualify::test {
namespace {

using namespace std::chrono_literals;
using run::Request;

/// The n-th time (from 1) that a life comes by this place.
struct Point {
  std::string place;
  int time = 0;
  bool operator<(const Point& other) const {
    return std::tie(place, time) < std::tie(other.place, other.time);
  }
};
std::ostream& operator<<(std::ostream& out, const Point& point) {
  return out << point.place << " " << point.time;
}

/// Notes the points that a life comes by, or ends it at one.
class Fate {
 public:
  Fate(std::optional<Point> end, const fs::path& trace) : end_(std::move(end)) {
    if (!end_) trace_.open(trace);
  }
  void point(const std::string& place) {
    const int time = ++passed_[place];
    if (end_ && end_->place == place && end_->time == time) ::kill(::getpid(), SIGKILL);
    if (trace_.is_open()) trace_ << place << '\n' << std::flush;
  }

 private:
  std::optional<Point> end_;
  std::ofstream trace_;
  std::map<std::string, int> passed_;
};

class FatefulClock final : public Clock {
 public:
  explicit FatefulClock(Fate& fate) : fate_(fate) {}
  Time now() const override { return clock_.now(); }
  void sleep_for(Duration duration) override {
    fate_.point("pause");
    clock_.sleep_for(duration);
  }

 private:
  Fate& fate_;
  SystemClock clock_;
};

class FatefulSigner final : public ledger::Signer {
 public:
  FatefulSigner(std::unique_ptr<ledger::Signer> key, Fate& fate)
      : key_(std::move(key)), fate_(fate) {}
  const ledger::PublicKey& public_key() const override { return key_->public_key(); }
  Result<std::string> sign(std::string_view message) const override {
    fate_.point("before sign");
    return key_->sign(message);
  }

 private:
  std::unique_ptr<ledger::Signer> key_;
  Fate& fate_;
};

class FatefulScheduler final : public scheduler::Scheduler {
  template <class Call>
  auto ask(const char* what, Call&& call) {
    fate_.point(std::string("before ") + what);
    auto answer = call();
    fate_.point(std::string("after ") + what);
    return answer;
  }

 public:
  FatefulScheduler(scheduler::Scheduler& real, Fate& fate) : real_(real), fate_(fate) {}
  std::string kind() const override { return real_.kind(); }
  Result<std::string> describe() override {
    return ask("describe", [&] { return real_.describe(); });
  }
  Result<Time> now() override {
    return ask("now", [&] { return real_.now(); });
  }
  Result<std::vector<scheduler::Reservation>> reservations() override {
    return ask("reservations", [&] { return real_.reservations(); });
  }
  Result<std::vector<scheduler::Node>> nodes() override {
    return ask("nodes", [&] { return real_.nodes(); });
  }
  Result<std::vector<scheduler::Job>> jobs() override {
    return ask("jobs", [&] { return real_.jobs(); });
  }
  Result<void> would_accept(const scheduler::JobRequest& request) override {
    return ask("would_accept", [&] { return real_.would_accept(request); });
  }
  Result<scheduler::Submission> submit(const scheduler::JobRequest& request) override {
    return ask("submit", [&] { return real_.submit(request); });
  }
  Result<std::vector<scheduler::Job>> find(const std::string& nonce) override {
    return ask("find", [&] { return real_.find(nonce); });
  }
  Result<std::vector<scheduler::Job>> accounted(const std::string& name, const std::string& nonce,
                                                Time since) override {
    return ask("accounted", [&] { return real_.accounted(name, nonce, since); });
  }
  Result<void> cancel(const std::string& job_id, const std::string& nonce) override {
    return ask("cancel", [&] { return real_.cancel(job_id, nonce); });
  }

 private:
  scheduler::Scheduler& real_;
  Fate& fate_;
};

class CrashPoints : public GateTest {
 protected:
  static constexpr int kLanes = 4;
  static constexpr int kEvenly = 14;

  int nodes_of_a_run() const override { return 1; }

  void SetUp() override {
    GateTest::SetUp();
    for (int lane = 0; lane < kLanes; ++lane) {
      const std::string name = reserve("gpu000" + std::to_string(lane + 1));
      grant(name);
      requests_.push_back(request);
    }
  }

  fs::path state_of(const std::string& life) { return folder() / life; }

  /// One process of a life; `end`: where it is killed.
  pid_t start(const std::string& life, int lane, const std::optional<Point>& end) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(engine(life, lane, end));
    return child;
  }

  int engine(const std::string& life, int lane, const std::optional<Point>& end) {
    auto state = run::open_state(state_of(life));
    if (!state) return 80;
    auto slurm_here = load_backend();
    Fate fate(end, folder() / (life + ".points"));
    FatefulClock clock_here(fate);
    FatefulScheduler cluster(*slurm_here, fate);
    const FatefulSigner signer(ledger::load_key(state->paths.signing_key()).value(), fate);
    run::Limits patience;
    patience.settle = 30s;
    const run::Ports ports{cluster,
                           signer,
                           clock_here,
                           [] { return run::Stop::none; },
                           [&](const journal::Event& event) { fate.point("event " + event.kind); },
                           qualify_program(),
                           cluster_environment(),
                           patience};
    const auto outcome =
        run::qualify_gate(*state, requests_[static_cast<std::size_t>(lane)], ports);
    if (outcome) return 0;
    std::ofstream(folder() / (life + ".error"), std::ios::app)
        << outcome.error().describe() << '\n';
    return 81;
  }

  void begin(const std::string& life) {
    fs::copy(folder() / "state", state_of(life), fs::copy_options::recursive);
  }

  static int end_of(pid_t child) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }

  std::string error_of(const std::string& life) {
    return read_file(folder() / (life + ".error")).value_or("");
  }

  /// Asserts that a life came to its whole end; returns the nonces of its jobs.
  void expect_whole(const std::string& life) {
    SCOPED_TRACE(life);
    auto state = run::open_state(state_of(life));
    ASSERT_TRUE(state) << state.error().describe();
    const journal::Journal journal(state->database);
    ASSERT_EQ(journal.qualifications("repeat").value().size(), 1U);
    const auto whole = run::derive(journal.events("repeat-1").value());
    ASSERT_TRUE(whole) << whole.error().describe();
    EXPECT_EQ(whole->verdict, policy::Verdict::pass) << ::testing::PrintToString(whole->reasons);
    EXPECT_FALSE(whole->certificate.empty());
    const ledger::Ledger ledger(state->database);
    EXPECT_EQ(ledger.records(ledger::RecordKind::certificate).value().size(), 1U);
    ASSERT_EQ(whole->runs.size(), 2U);
    for (const run::RunState& one : whole->runs) {
      int complete = 0;
      for (const run::Attempt& attempt : one.attempts) {
        EXPECT_TRUE(attempt.ended);
        complete += attempt.complete ? 1 : 0;
        if (attempt.job_id.empty()) {
          without_job_.insert(attempt.nonce);
        } else {
          EXPECT_TRUE(jobs_.emplace(attempt.nonce, attempt.job_id).second);
        }
      }
      EXPECT_EQ(complete, 1) << "run " << one.run.id;
      ASSERT_TRUE(one.evidence);
      const auto evidence = run::verify_evidence(state->evidence, *one.evidence);
      EXPECT_TRUE(evidence) << evidence.error().describe();
    }
  }

  /// By the controller's own record of every job that ended: nonce -> numbers.
  static std::map<std::string, std::vector<std::string>> ended_jobs() {
    std::ifstream file(cluster_folder() / "log" / "jobcomp.txt");
    const std::regex pattern("JobId=([0-9]+) .* Name=qualify:repeat:[ab]:(q[0-9a-f]+) ");
    std::map<std::string, std::vector<std::string>> jobs;
    for (std::string line; std::getline(file, line);) {
      std::smatch found;
      if (std::regex_search(line, found, pattern)) jobs[found[2]].push_back(found[1]);
    }
    return jobs;
  }

  /// What is killed: evenly over all points, and each side of the submits.
  std::vector<Point> sample(const fs::path& trace) {
    std::ifstream file(trace);
    std::map<std::string, int> passed;
    std::vector<Point> all;
    for (std::string place; std::getline(file, place);) all.push_back({place, ++passed[place]});
    std::cout << all.size() << " points\n";
    RecordProperty("points", std::to_string(all.size()));
    std::set<Point> chosen = {{"before submit", 1},
                              {"after submit", 1},
                              {"after submit", 2},
                              {"event attempt.intent", 1},
                              {"event attempt.submitted", 2}};
    if (all.size() > kEvenly) {
      for (std::size_t i = 0; i < kEvenly; ++i) {
        chosen.insert(all[i * (all.size() - 1) / (kEvenly - 1)]);
      }
    }
    return {chosen.begin(), chosen.end()};
  }

  std::vector<Request> requests_;
  std::map<std::string, std::string> jobs_;  ///< nonce -> number, by the journals
  std::set<std::string> without_job_;
};

TEST_F(CrashPoints, ASampleOfThemIsSurvivedOnARealController) {
  begin("undisturbed");
  ASSERT_EQ(end_of(start("undisturbed", 0, std::nullopt)), 0) << error_of("undisturbed");
  expect_whole("undisturbed");
  const std::vector<Point> points = sample(folder() / "undisturbed.points");
  ASSERT_GE(points.size(), 12U);

  std::size_t reached = 0;
  for (std::size_t first = 0; first < points.size(); first += kLanes) {
    const std::size_t count = std::min<std::size_t>(kLanes, points.size() - first);
    std::vector<pid_t> children;
    std::vector<bool> killed;
    const auto life = [&](std::size_t lane) { return "life-" + std::to_string(first + lane); };
    for (std::size_t lane = 0; lane < count; ++lane) {
      begin(life(lane));
      children.push_back(start(life(lane), static_cast<int>(lane), points[first + lane]));
    }
    for (std::size_t lane = 0; lane < count; ++lane) {
      const int status = end_of(children[lane]);
      killed.push_back(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
      // A point that depends on how often was asked may not come.
      EXPECT_TRUE(killed.back() || status == 0) << status << " " << error_of(life(lane));
      reached += killed.back() ? 1 : 0;
      std::cout << life(lane) << (killed.back() ? ": killed at " : ": did not come by ")
                << points[first + lane] << std::endl;
      if (killed.back()) children[lane] = start(life(lane), static_cast<int>(lane), std::nullopt);
    }
    for (std::size_t lane = 0; lane < count; ++lane) {
      if (killed[lane]) {
        EXPECT_EQ(end_of(children[lane]), 0) << "could not go on: " << error_of(life(lane));
      }
      expect_whole(life(lane));
    }
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GE(reached, 12U);

  // The controller's own record: every job that a journal names, once, and no other.
  std::map<std::string, std::vector<std::string>> ended;
  wait_for([&] {
    ended = ended_jobs();
    return std::all_of(jobs_.begin(), jobs_.end(),
                       [&](const auto& job) { return ended.contains(job.first); });
  });
  for (const auto& [nonce, number] : jobs_) {
    EXPECT_THAT(ended[nonce], ::testing::ElementsAre(number)) << nonce;
  }
  for (const std::string& nonce : without_job_) EXPECT_FALSE(ended.contains(nonce)) << nonce;
  EXPECT_EQ(jobs_submitted(), jobs_.size()) << "a job that no attempt knows";
  RecordProperty("killed", std::to_string(reached));
}

}  // namespace
}  // namespace qualify::test
