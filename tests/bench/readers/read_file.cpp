// Reads one metric file and prints what it took: CPU and wall seconds, MB/s of CPU, peak memory.

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "qualify/evidence/metrics.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: read_file FILE\n", stderr);
    return 2;
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto run = qualify::evidence::read_metrics(argv[1]);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  if (!run) {
    std::fprintf(stderr, "%s\n", run.error().describe().c_str());
    return 1;
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  const double cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  std::size_t values = 0;
  for (const auto& [name, series] : run->series) values += series.values.size();
  const auto size = static_cast<double>(std::filesystem::file_size(argv[1]));
  std::printf(
      "%s: %zu values, %zu faults, cpu %.2f s, wall %.2f s, %.0f MB/s of cpu, peak %ld MiB\n",
      run->format.c_str(), values, run->faults.size(), cpu, wall.count(), size / 1e6 / cpu,
      usage.ru_maxrss / 1024);
  return 0;
}
