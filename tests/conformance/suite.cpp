#include "suite.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace qualify::test {

using namespace std::chrono_literals;
using scheduler::Job;
using scheduler::JobRequest;
using scheduler::JobState;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace {

bool is_running(const Job& job) {
  return job.state == JobState::running;
}
bool is_over(const Job& job) {
  return scheduler::is_terminal(job.state);
}

}  // namespace

Job Conformance::wait(const std::string& nonce, const std::function<bool(const Job&)>& done) {
  Job last;
  for (int i = 0; i < 2000; ++i) {
    const auto found = scheduler().find(nonce);
    if (found && found->size() == 1) {
      last = found->front();
      if (done(last)) return last;
    }
    backend().pass();
  }
  ADD_FAILURE() << "last seen " << scheduler::name_of(last.state) << " " << last.reason;
  return last;
}

TEST_P(Conformance, SaysWhatItIs) {
  EXPECT_FALSE(scheduler().kind().empty());
  EXPECT_FALSE(scheduler().describe().value().empty());
  const Time before = scheduler().now().value();
  EXPECT_LE(before, scheduler().now().value());
}

TEST_P(Conformance, TheReservationHoldsUsableNodesAndKeepsItsIdentity) {
  const std::string name = backend().reservation();
  const auto find = [&] {
    const auto all = scheduler().reservations().value();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
    return found == all.end() ? scheduler::Reservation{} : *found;
  };
  const scheduler::Reservation seen = find();
  ASSERT_FALSE(seen.nodes.empty());
  EXPECT_TRUE(std::is_sorted(seen.nodes.begin(), seen.nodes.end()));
  EXPECT_LE(seen.start, scheduler().now().value());
  backend().pass();
  EXPECT_EQ(fingerprint(find()), fingerprint(seen));
  const auto nodes = scheduler().nodes().value();
  for (const scheduler::Node& node : nodes) {
    if (std::count(seen.nodes.begin(), seen.nodes.end(), node.name) > 0) {
      EXPECT_TRUE(node.usable) << node.name << " " << node.state;
    }
  }
}

TEST_P(Conformance, AJobThatSucceedsIsCompleted) {
  const JobRequest request = backend().request(10ms, 0);
  const auto submitted = scheduler().submit(request);
  ASSERT_TRUE(submitted) << submitted.error().describe();
  const Job job = wait(request.nonce, is_over);
  EXPECT_EQ(job.state, JobState::completed);
  EXPECT_EQ(job.id, submitted->job_id);
  EXPECT_EQ(job.exit_code, 0);
  EXPECT_EQ(job.signal, 0);
  EXPECT_EQ(job.restart_count, 0u);
  ASSERT_TRUE(job.submit_time && job.start_time && job.end_time);
  EXPECT_LE(*job.submit_time, *job.start_time);
  EXPECT_LE(*job.start_time, *job.end_time);
}

TEST_P(Conformance, AJobThatFailsKeepsItsExitCode) {
  const JobRequest request = backend().request(10ms, 3);
  ASSERT_TRUE(scheduler().submit(request));
  const Job job = wait(request.nonce, is_over);
  EXPECT_EQ(job.state, JobState::failed);
  EXPECT_EQ(job.exit_code, 3);
}

TEST_P(Conformance, ARunningJobIsInItsReservationOnItsNodes) {
  const JobRequest request = backend().request(60s, 0);
  ASSERT_TRUE(scheduler().submit(request));
  const Job job = wait(request.nonce, is_running);
  EXPECT_EQ(job.reservation, request.reservation);
  EXPECT_THAT(job.nodes, SizeIs(1));
  EXPECT_FALSE(job.end_time);
  const auto all = scheduler().jobs().value();
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [&](const Job& one) { return one.nonce == request.nonce; }),
            1);
  EXPECT_TRUE(scheduler().cancel(job.id, request.nonce));
  wait(request.nonce, is_over);
}

TEST_P(Conformance, ANonceFindsItsJobAndNoOther) {
  const JobRequest first = backend().request(10ms, 0);
  ASSERT_TRUE(scheduler().submit(first));
  wait(first.nonce, is_over);
  const JobRequest second = backend().request(10ms, 0);
  EXPECT_THAT(scheduler().find(second.nonce).value(), IsEmpty());
  ASSERT_TRUE(scheduler().submit(second));
  wait(second.nonce, is_over);
  EXPECT_THAT(scheduler().find(first.nonce).value(), SizeIs(1));
  EXPECT_THAT(scheduler().find(first.nonce + "x").value(), IsEmpty());
  EXPECT_THAT(scheduler().find("").value(), IsEmpty());
}

TEST_P(Conformance, CancelEndsAJobAndMayBeRepeated) {
  const JobRequest request = backend().request(60s, 0);
  const auto submitted = scheduler().submit(request);
  ASSERT_TRUE(submitted);
  wait(request.nonce, is_running);
  EXPECT_TRUE(scheduler().cancel(submitted->job_id, request.nonce));
  EXPECT_TRUE(scheduler().cancel(submitted->job_id, request.nonce));
  EXPECT_EQ(wait(request.nonce, is_over).state, JobState::cancelled);
  EXPECT_TRUE(scheduler().cancel(submitted->job_id, request.nonce));
  EXPECT_TRUE(scheduler().cancel("999999", request.nonce)) << "an unknown job is ok";
}

TEST_P(Conformance, CancelSparesAJobOfAnotherNonce) {
  const JobRequest request = backend().request(60s, 0);
  const auto submitted = scheduler().submit(request);
  ASSERT_TRUE(submitted);
  wait(request.nonce, is_running);
  EXPECT_TRUE(scheduler().cancel(submitted->job_id, request.nonce + "x"));
  backend().pass();
  EXPECT_EQ(wait(request.nonce, [](const Job&) { return true; }).state, JobState::running);
  EXPECT_TRUE(scheduler().cancel(submitted->job_id, request.nonce));
  wait(request.nonce, is_over);
}

TEST_P(Conformance, SaysWhetherItWouldAcceptWithoutStartingAnything) {
  JobRequest request = backend().request(10ms, 0);
  EXPECT_TRUE(scheduler().would_accept(request));
  EXPECT_THAT(scheduler().find(request.nonce).value(), IsEmpty());
  request.reservation = "nosuch";
  const auto answer = scheduler().would_accept(request);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::refused);
}

TEST_P(Conformance, TheTimeLimitEndsAJob) {
  JobRequest request = backend().request(600s, 0);
  request.time_limit = backend().shortest_limit();
  if (request.time_limit > 10s) GTEST_SKIP() << "its limits are minutes";
  ASSERT_TRUE(scheduler().submit(request));
  EXPECT_EQ(wait(request.nonce, is_over).state, JobState::timeout);
}

TEST_P(Conformance, ARequestWithoutANonceStartsNothing) {
  JobRequest request = backend().request(10ms, 0);
  const std::size_t before = scheduler().jobs().value().size();
  request.nonce.clear();
  const auto submitted = scheduler().submit(request);
  ASSERT_FALSE(submitted);
  EXPECT_THAT((std::vector{Errc::invalid_input, Errc::refused}), Contains(submitted.error().code));
  EXPECT_LE(scheduler().jobs().value().size(), before);
}

}  // namespace qualify::test
