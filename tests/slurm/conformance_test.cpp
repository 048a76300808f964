// The suite of tests/conformance against the real controller.
#include <thread>

#include "cluster.hpp"
#include "suite.hpp"

namespace qualify::test {
namespace {

using namespace std::chrono_literals;

class SlurmConformance final : public Backend, private ClusterTest {
 public:
  SlurmConformance() {
    SetUp();
    name_ = reserve();
  }
  ~SlurmConformance() override { TearDown(); }
  scheduler::Scheduler& scheduler() override { return slurm(); }
  std::string reservation() override { return name_; }
  scheduler::JobRequest request(Duration duration, int code) override {
    const double seconds = std::chrono::duration<double>(duration).count();
    scheduler::JobRequest request = ClusterTest::request(
        name_, "sleep " + std::to_string(seconds) + "\nexit " + std::to_string(code) + "\n");
    request.nodes = 1;
    return request;
  }
  void pass() override { std::this_thread::sleep_for(20ms); }
  Duration shortest_limit() override { return 1min; }

 private:
  void TestBody() override {}
  std::string name_;
};

INSTANTIATE_TEST_SUITE_P(Slurm, Conformance,
                         ::testing::Values(MakeBackend{
                             "slurm", [] { return std::make_unique<SlurmConformance>(); }}));

}  // namespace
}  // namespace qualify::test
