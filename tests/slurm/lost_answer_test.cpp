// A wire between libslurm and the controller that can be cut: after the request has arrived, before
// it, and in the middle of an answer; and an endpoint that answers rubbish.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "gate.hpp"
#include "qualify/base/files.hpp"

namespace qualify::test {
namespace {

using namespace std::chrono_literals;
using run::event::kEnded;
using run::event::kIntent;
using run::event::kSubmitted;
using run::event::kUnanswered;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

enum class Cut { none, before_request, after_request, within_answer, rubbish };

/// One connection at a time between `port()` and the controller. A request that contains `mark` is
/// cut once, as told.
class Proxy {
 public:
  explicit Proxy(std::uint16_t controller) : controller_(controller) {
    listener_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = loopback(0);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 64), 0);
    socklen_t size = sizeof address;
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Proxy() {
    stop_ = true;
    thread_.join();
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  void cut(Cut how, std::string mark) {
    const std::lock_guard lock(mutex_);
    how_ = how;
    mark_ = std::move(mark);
  }
  [[nodiscard]] int cuts() const { return cuts_; }

 private:
  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  void serve() {
    while (!stop_) {
      pollfd waiting{listener_.get(), POLLIN, 0};
      if (::poll(&waiting, 1, 20) <= 0) continue;
      const Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      const Fd server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const sockaddr_in address = loopback(controller_);
      if (::connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
          0) {
        carry(client.get(), server.get());
      }
    }
  }

  /// Slurm's messages: four bytes of length, then so many.
  static bool whole(const std::string& message) {
    if (message.size() < 4) return false;
    std::uint32_t length = 0;
    std::memcpy(&length, message.data(), 4);
    return message.size() >= 4 + std::size_t{ntohl(length)};
  }

  static void send_all(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  static std::string receive(int socket) {
    std::array<char, 65536> buffer{};
    const ssize_t count = ::recv(socket, buffer.data(), buffer.size(), 0);
    return {buffer.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
  }

  void carry(int client, int server) {
    std::string request;
    while (!whole(request)) {
      const std::string more = receive(client);
      if (more.empty()) return;
      request += more;
    }
    Cut how = Cut::none;
    {
      const std::lock_guard lock(mutex_);
      if (how_ != Cut::none && request.find(mark_) != std::string::npos) {
        how = std::exchange(how_, Cut::none);
        ++cuts_;
      }
    }
    if (how == Cut::before_request) return;
    send_all(server, request);
    std::string answer;
    while (!whole(answer)) {
      const std::string more = receive(server);
      if (more.empty()) break;
      answer += more;
    }
    if (how == Cut::after_request) return;
    if (how == Cut::within_answer) answer.resize(answer.size() / 2);
    if (how == Cut::rubbish) {
      for (std::size_t i = 4; i < answer.size(); ++i) answer[i] = static_cast<char>(i * 37);
    }
    send_all(client, answer);
  }

  std::uint16_t controller_;
  std::uint16_t port_ = 0;
  Fd listener_;
  std::mutex mutex_;
  Cut how_ = Cut::none;
  std::string mark_;
  std::atomic<int> cuts_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

class LostAnswer : public GateTest {
 protected:
  void SetUp() override {
    proxy_.emplace(controller_port());
    ::setenv("SLURM_CONF", configuration_with_port(proxy_->port()).c_str(), 1);
    GateTest::SetUp();
  }
  /// Cuts the submit call of the first attempt.
  void cut_submit(Cut how) {
    at(kIntent,
       [this, how] { proxy_->cut(how, events(kIntent)[0].at("nonce").get<std::string>()); });
  }
  void expect_one_job_an_attempt() {
    EXPECT_EQ(proxy_->cuts(), 1);
    std::map<std::string, int> names;
    const auto jobs = slurm().jobs();
    ASSERT_TRUE(jobs);
    for (const auto& job : *jobs) ++names[job.nonce];
    for (const auto& [nonce, count] : names) EXPECT_EQ(count, 1) << nonce;
  }
  std::optional<Proxy> proxy_;
};

TEST_F(LostAnswer, ASubmitThatWasAcceptedIsFoundByItsNonce) {
  grant(reserve());
  cut_submit(Cut::after_request);
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  EXPECT_THAT(events(kUnanswered), SizeIs(1));
  EXPECT_THAT(events(kIntent), SizeIs(2)) << "no second attempt";
  expect_one_job_an_attempt();
  EXPECT_EQ(jobs_submitted(), 2u) << "no second job";
}

TEST_F(LostAnswer, ASubmitThatNeverArrivedIsTriedInANewAttempt) {
  limits.look_for_lost = 1s;
  grant(reserve());
  cut_submit(Cut::before_request);
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  expect_one_job_an_attempt();
  EXPECT_EQ(jobs_submitted(), 2u);
}

TEST_F(LostAnswer, AnAnswerThatWasCutShortIsNoAnswer) {
  grant(reserve());
  cut_submit(Cut::within_answer);
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  EXPECT_THAT(events(kIntent), SizeIs(2));
  expect_one_job_an_attempt();
  EXPECT_EQ(jobs_submitted(), 2u);
}

TEST_F(LostAnswer, RubbishIsNoAnswer) {
  grant(reserve());
  cut_submit(Cut::rubbish);
  const auto outcome = run();
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
  EXPECT_THAT(events(kIntent), SizeIs(2));
  expect_one_job_an_attempt();
  EXPECT_EQ(jobs_submitted(), 2u);
}

}  // namespace
}  // namespace qualify::test
