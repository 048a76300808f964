// Reads one metric file, or compares two, and prints what it took: CPU and wall seconds, MB/s of
// CPU, peak memory.

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "qualify/exactness/compare.hpp"

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  if (argc != 2 && argc != 3) {
    std::fputs("usage: read_file FILE [OTHER]\n", stderr);
    return 2;
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto read = [](const char* path) {
    auto run = qualify::evidence::read_metrics(path, {}, fs::temp_directory_path());
    if (!run) {
      std::fprintf(stderr, "%s\n", run.error().describe().c_str());
      std::exit(1);
    }
    return std::move(*run);
  };
  const auto run = read(argv[1]);
  auto size = static_cast<double>(fs::file_size(argv[1]));
  const char* outcome = "read";
  if (argc == 3) {
    const auto other = read(argv[2]);
    size += static_cast<double>(fs::file_size(argv[2]));
    outcome = qualify::exactness::name_of(qualify::exactness::compare(run, other).outcome);
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  const double cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  std::size_t values = 0;
  for (const auto& [name, series] : run.series) values += series.values.size();
  std::printf(
      "%s %s: %zu values, %zu faults, cpu %.2f s, wall %.2f s, %.0f MB/s of cpu, peak %ld MiB\n",
      run.format.c_str(), outcome, values, run.faults.size(), cpu, wall.count(), size / 1e6 / cpu,
      usage.ru_maxrss / 1024);
  return 0;
}
