#include "qualify/scheduler/fake.hpp"

#include "suite.hpp"
#include "support/fake_clock.hpp"

namespace qualify::test {
namespace {

using namespace std::chrono_literals;

class FakeBackend final : public Backend {
 public:
  scheduler::Scheduler& scheduler() override { return fake_; }
  std::string reservation() override { return "fake"; }
  scheduler::JobRequest request(Duration duration, int code) override {
    scheduler::FakeJob job;
    job.duration = duration;
    job.exit_code = code;
    job.end = code == 0 ? scheduler::JobState::completed : scheduler::JobState::failed;
    // The script goes by submission: this is what the next one becomes.
    fake_.script().jobs.resize(fake_.submissions());
    fake_.script().jobs.push_back(job);
    scheduler::JobRequest request;
    request.nonce = "n" + std::to_string(++next_);
    request.name = "conformance";
    request.reservation = reservation();
    request.time_limit = 1h;
    return request;
  }
  void pass() override { clock_.advance(1s); }
  Duration shortest_limit() override { return 1s; }

 private:
  static scheduler::FakeScript script(Time now) {
    scheduler::Reservation reservation;
    reservation.name = "fake";
    reservation.start = now;
    reservation.end = now + 4h;
    reservation.flags = {"SPEC_NODES"};
    reservation.nodes = {"node1"};
    reservation.node_count = 1;
    scheduler::Node node;
    node.name = "node1";
    node.usable = true;
    node.state = "IDLE";
    scheduler::FakeScript script;
    script.reservations = {reservation};
    script.nodes = {node};
    return script;
  }

  FakeClock clock_;
  scheduler::Fake fake_{script(clock_.now()), clock_};
  int next_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Fake, Conformance,
                         ::testing::Values(MakeBackend{
                             "fake", [] { return std::make_unique<FakeBackend>(); }}));

}  // namespace
}  // namespace qualify::test
