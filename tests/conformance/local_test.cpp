#include "qualify/scheduler/local.hpp"

#include <thread>

#include "qualify/base/files.hpp"
#include "suite.hpp"
#include "support/temp_folder.hpp"

namespace qualify::test {
namespace {

using namespace std::chrono_literals;

class LocalBackend final : public Backend {
 public:
  scheduler::Scheduler& scheduler() override { return *local_; }
  std::string reservation() override { return "local"; }
  scheduler::JobRequest request(Duration duration, int code) override {
    scheduler::JobRequest request;
    request.nonce = "n" + std::to_string(++next_);
    request.name = "conformance";
    request.executable = JOB_EXECUTABLE;
    request.folder = folder_ / request.nonce;
    fs::create_directories(request.folder);
    request.plan_file = request.folder + "/plan";
    const double seconds = std::chrono::duration<double>(duration).count();
    EXPECT_TRUE(write_file_atomic(request.plan_file, "sleep " + std::to_string(seconds) +
                                                         "\nexit " + std::to_string(code) + "\n"));
    request.environment = {{"PATH", "/usr/bin:/bin"}};
    request.reservation = reservation();
    request.time_limit = 1h;
    return request;
  }
  void pass() override { std::this_thread::sleep_for(5ms); }
  Duration shortest_limit() override { return 100ms; }
  [[nodiscard]] const fs::path& folder() const { return folder_.path(); }

 private:
  TempFolder folder_;
  SystemClock clock_;
  std::unique_ptr<scheduler::Scheduler> local_ = scheduler::make_local(
      {folder_ / "jobs", folder_ / "machine.lock", "thishost", "tester"}, clock_);
  int next_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Local, Conformance,
                         ::testing::Values(MakeBackend{
                             "local", [] { return std::make_unique<LocalBackend>(); }}));

TEST(Local, AValuePassedAtLaunchIsGoneFromTheDiskOnceTheJobRuns) {
  LocalBackend backend;
  auto request = backend.request(0ms, 0);
  request.environment["TOKEN"] = "not-to-be-kept";
  ASSERT_TRUE(backend.scheduler().submit(request));
  for (bool over = false; !over; backend.pass()) {
    const auto found = backend.scheduler().find(request.nonce).value();
    over = !found.empty() && scheduler::is_terminal(found.front().state);
  }
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(backend.folder())) {
    if (!entry.is_regular_file()) continue;
    ++files;
    EXPECT_EQ(read_file(entry.path()).value().find("not-to-be-kept"), std::string::npos)
        << entry.path();
  }
  EXPECT_GT(files, 3U);
}

}  // namespace
}  // namespace qualify::test
