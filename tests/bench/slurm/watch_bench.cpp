// watch_bench MODULE RUNS SECONDS FOLDER
//
// Watches RUNS live jobs of a real controller for SECONDS, as a daemon with so many runs would, and
// prints what that costs: processor time as a part of one core, the largest resident size, polls,
// and the controller's own count of questions (sdiag). The peer in the same run is squeue, asked as
// often: what a script around the command line would do. run.sh brings the cluster up and fills it.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "qualify/base/clock.hpp"
#include "qualify/base/files.hpp"
#include "qualify/base/process.hpp"
#include "qualify/scheduler/job_watch.hpp"
#include "qualify/scheduler/module.hpp"

namespace {

using namespace qualify;
using namespace std::chrono_literals;

double seconds_of(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

long resident_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const int runs = std::atoi(argv[2]);
  const auto span = std::chrono::seconds(std::atoi(argv[3]));
  SystemClock clock;
  auto scheduler = scheduler::load_module(argv[1]);
  if (!scheduler) {
    std::fprintf(stderr, "%s\n", scheduler.error().describe().c_str());
    return 1;
  }
  scheduler::JobWatch watch(**scheduler, clock);
  for (int i = 1; i <= runs; ++i) watch.add("bench" + std::to_string(i));

  const double before = seconds_of(RUSAGE_SELF);
  int polls = 0;
  std::size_t changes = 0;
  std::size_t unknown = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < span) {
    const auto seen = watch.poll();
    ++polls;
    if (!seen) {
      std::fprintf(stderr, "%s\n", seen.error().describe().c_str());
      return 1;
    }
    changes += seen->size();
    for (const auto& change : *seen) unknown += change.job ? 0 : 1;
    std::this_thread::sleep_for(watch.pause());
  }
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double own = seconds_of(RUSAGE_SELF) - before;
  const long resident = resident_kib();

  // The peer, asked as often.
  const double children = seconds_of(RUSAGE_CHILDREN);
  const fs::path out = fs::path(argv[4]) / "squeue.out";
  for (int i = 0; i < std::min(polls, 20); ++i) {
    ProcessRequest request;
    request.argv = {"/usr/bin/squeue", "-h", "-t", "all", "-o", "%A %T %r %N %k"};
    request.environment = {{"SLURM_CONF", std::getenv("SLURM_CONF")}, {"PATH", "/usr/bin:/bin"}};
    request.folder = argv[4];
    request.stdout_file = out;
    const auto pid = spawn(request);
    if (!pid || !wait_for(*pid)) return 1;
  }
  const double peer = (seconds_of(RUSAGE_CHILDREN) - children) / std::min(polls, 20) * polls;

  std::printf("runs watched             %d (%zu changes seen, %zu not known)\n", runs, changes,
              unknown);
  std::printf("polls                    %d in %.1f s, one question each\n", polls, wall);
  std::printf("part of one core         %.2f %%\n", own / wall * 100);
  std::printf("largest resident size    %.1f MiB\n", static_cast<double>(resident) / 1024);
  std::printf("processor time           1 : %.1f against squeue asked as often\n", peer / own);
  const bool good = own / wall < 0.05 && resident < 100 * 1024 && unknown == 0;
  std::printf("%s\n", good ? "within the bounds: 5 %, 100 MiB, every run known" : "OUT OF BOUNDS");
  return good ? 0 : 1;
}
