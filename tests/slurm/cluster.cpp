#include "cluster.hpp"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "qualify/base/files.hpp"
#include "qualify/base/process.hpp"
#include "qualify/scheduler/module.hpp"

namespace qualify::test {

namespace {

using namespace std::chrono_literals;

const std::string kFolder = kClusterFolder;
const std::string kConfiguration = kFolder + "/slurm.conf";

std::map<std::string, std::string> environment() {
  return {{"PATH", "/usr/sbin:/usr/bin:/sbin:/bin"},
          {"LC_ALL", "C.UTF-8"},
          {"TZ", "UTC"},
          {"SLURM_CONF", kConfiguration}};
}

void cluster(const std::string& command, const std::string& name) {
  const Printed printed = run_program({CLUSTER_SCRIPT, command, name, "--dir", kFolder});
  ASSERT_EQ(printed.code, 0) << command << " " << name << ": " << printed.text;
}

}  // namespace

Printed run_program(const std::vector<std::string>& argv) {
  const TempFolder folder;
  ProcessRequest request;
  request.argv = argv;
  request.environment = environment();
  request.folder = folder.path();
  request.stdout_file = folder / "out";
  request.stderr_file = folder / "out";
  const auto pid = spawn(request);
  if (!pid) return {127, pid.error().describe()};
  const auto status = wait_for(*pid);
  Printed printed;
  printed.code = status ? (status->signal != 0 ? 128 + status->signal : status->code) : 127;
  printed.text = read_file(folder / "out").value_or("");
  return printed;
}

void ClusterTest::SetUp() {
  ASSERT_TRUE(fs::exists(kConfiguration)) << "CTest brings the cluster up: ctest -L slurm";
  // libslurm has no other way to be told. A test may have set its own already.
  ::setenv("SLURM_CONF", kConfiguration.c_str(), own_configuration_ ? 0 : 1);
  scheduler_ = load_backend();
  ASSERT_TRUE(scheduler_);
  restore();
  log_start_ = fs::file_size(kFolder + "/log/slurmctld.log");
}

std::unique_ptr<scheduler::Scheduler> ClusterTest::load_backend() {
  auto loaded = scheduler::load_module(SLURM_MODULE);
  if (loaded) return std::move(*loaded);
  ADD_FAILURE() << loaded.error().describe();
  return nullptr;
}

void ClusterTest::TearDown() {
  if (scheduler_ == nullptr) return;
  restore();
}

/// Whatever a test did, also one that crashed: daemons up, no jobs, no reservations, nodes idle.
void ClusterTest::restore() {
  if (run_program({"scontrol", "ping"}).text.find("is UP") == std::string::npos) {
    start_daemon("slurmctld");
  }
  const auto end = std::chrono::steady_clock::now() + 60s;
  bool clean = false;
  while (!clean && std::chrono::steady_clock::now() < end) {
    const std::string jobs = run_program({"squeue", "-h", "-o", "%A"}).text;
    if (!jobs.empty()) run_program({"scancel", "-s", "KILL", "--user=root"});
    std::istringstream names(run_program({"scontrol", "-o", "show", "reservations"}).text);
    bool reserved = false;
    for (std::string line; std::getline(names, line);) {
      if (!line.starts_with("ReservationName=")) continue;
      reserved = true;
      run_program({"scontrol", "delete", "reservation=" + line.substr(16, line.find(' ') - 16)});
    }
    bool idle = true;
    std::istringstream nodes(run_program({"sinfo", "-h", "-N", "-o", "%N %T"}).text);
    for (std::string name, state; nodes >> name >> state;) {
      if (state == "idle") continue;
      idle = false;
      if (state.find("drain") != std::string::npos || state.find("down") != std::string::npos) {
        run_program({"scontrol", "update", "nodename=" + name, "state=resume"});
      }
      const auto pid = read_file(kFolder + "/pid/" + name + ".pid");
      if (!pid || ::kill(std::atoi(pid->c_str()), 0) != 0) start_daemon(name);
    }
    clean = jobs.empty() && !reserved && idle;
    if (!clean) std::this_thread::sleep_for(100ms);
  }
  EXPECT_TRUE(clean) << "the cluster could not be put back in order";
}

std::string ClusterTest::must(const std::vector<std::string>& argv) {
  const Printed printed = run_program(argv);
  EXPECT_EQ(printed.code, 0) << argv[0] << ": " << printed.text;
  return printed.text;
}

std::string ClusterTest::reserve(const std::string& nodes, const std::string& more,
                                 const std::string& start, int minutes) {
  const std::string name = unique_name();
  std::vector<std::string> argv = {"scontrol",           "create",
                                   "reservation",        "reservationname=" + name,
                                   "starttime=" + start, "duration=" + std::to_string(minutes),
                                   "users=root",         "nodes=" + nodes};
  if (!more.empty()) argv.push_back(more);
  must(argv);
  const scheduler::Reservation made = ClusterTest::reservation(name);
  note_grant(made);
  return name;
}

std::string ClusterTest::reserve_for_seconds(int seconds) {
  const std::string name = unique_name();
  must({"scontrol", "create", "reservation", "reservationname=" + name, "starttime=now",
        "endtime=now+" + std::to_string(seconds), "users=root", "nodes=gpu[0001-0004]"});
  note_grant(ClusterTest::reservation(name));
  return name;
}

std::string ClusterTest::unique_name() {
  return "sat-" + std::to_string(::getpid()) + "-" + std::to_string(++next_);
}

void ClusterTest::note_grant(const scheduler::Reservation& reservation) {
  std::ofstream(kFolder + "/grants.jsonl", std::ios::app) << to_json(reservation).dump() << '\n';
}

void ClusterTest::wait_for(const std::function<bool()>& done, int seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (!done()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << "not within " << seconds << " s";
    std::this_thread::sleep_for(50ms);
  }
}

std::map<std::string, std::string> ClusterTest::cluster_environment() {
  return environment();
}

namespace {

std::string setting(const std::string& key) {
  std::ifstream file(kConfiguration);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key + "=")) return line.substr(key.size() + 1);
  }
  return "";
}

}  // namespace

std::filesystem::path ClusterTest::cluster_folder() {
  return kFolder;
}

std::uint16_t ClusterTest::controller_port() {
  return static_cast<std::uint16_t>(std::stoi(setting("SlurmctldPort")));
}

std::string ClusterTest::configuration_with_port(std::uint16_t port) {
  std::string text = read_file(kConfiguration).value_or("");
  const std::string line = "SlurmctldPort=" + setting("SlurmctldPort") + "\n";
  text.replace(text.find(line), line.size(), "SlurmctldPort=" + std::to_string(port) + "\n");
  // libslurm looks for the other files beside it.
  for (const char* beside : {"gres.conf", "cgroup.conf", "plugstack.conf"}) {
    fs::create_symlink(kFolder + "/" + beside, folder_ / beside);
  }
  own_configuration_ = true;
  const fs::path file = folder_ / "slurm.conf";
  EXPECT_TRUE(write_file_atomic(file, text));
  return file;
}

scheduler::Reservation ClusterTest::reservation(const std::string& name) {
  const auto all = slurm().reservations();
  if (all) {
    for (const scheduler::Reservation& candidate : *all) {
      if (candidate.name == name) return candidate;
    }
  }
  ADD_FAILURE() << "no reservation " << name;
  return {};
}

scheduler::JobRequest ClusterTest::request(const std::string& reservation,
                                           const std::string& script) {
  const fs::path executable = folder() / "qualify";
  if (!fs::exists(executable)) {
    // Stands for qualify itself: `qualify job PLAN`, where the plan is the script.
    EXPECT_TRUE(
        write_file_atomic(executable, "#!/bin/sh\n[ \"$1\" = job ] || exit 99\n. \"$2\"\n", 0755));
  }
  scheduler::JobRequest request;
  request.nonce = "n" + std::to_string(::getpid()) + "x" + std::to_string(++next_);
  request.name = "qualify:gate:run";
  request.executable = executable;
  request.folder = folder() / request.nonce;
  fs::create_directories(request.folder);
  request.plan_file = request.folder + "/plan";
  EXPECT_TRUE(write_file_atomic(request.plan_file, script));
  request.environment = environment();
  request.nodes = 4;
  request.gpus_per_node = 8;
  request.reservation = reservation;
  request.time_limit = 5min;
  return request;
}

std::string ClusterTest::submit(const scheduler::JobRequest& request) {
  const auto submitted = slurm().submit(request);
  if (!submitted) {
    ADD_FAILURE() << submitted.error().describe();
    return "";
  }
  return submitted->job_id;
}

scheduler::Job ClusterTest::wait(const std::string& nonce,
                                 const std::function<bool(const scheduler::Job&)>& done,
                                 int seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  scheduler::Job last;
  while (std::chrono::steady_clock::now() < end) {
    const auto found = slurm().find(nonce);
    if (found && found->size() == 1) {
      last = found->front();
      if (done(last)) return last;
    }
    std::this_thread::sleep_for(50ms);
  }
  ADD_FAILURE() << "not within " << seconds << " s; last: " << scheduler::name_of(last.state) << " "
                << last.reason;
  return last;
}

scheduler::Job ClusterTest::wait_until_over(const std::string& nonce, int seconds) {
  return wait(
      nonce, [](const scheduler::Job& job) { return scheduler::is_terminal(job.state); }, seconds);
}

void ClusterTest::start_daemon(const std::string& name) {
  cluster("start", name);
}
void ClusterTest::stop_daemon(const std::string& name) {
  cluster("stop", name);
}
void ClusterTest::kill_daemon(const std::string& name) {
  cluster("kill", name);
}

std::string ClusterTest::controller_log() {
  std::ifstream file(kFolder + "/log/slurmctld.log");
  file.seekg(static_cast<std::streamoff>(log_start_));
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace qualify::test
