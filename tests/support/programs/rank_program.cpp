// rank_program OUTPUT [OPTION…]: one rank of a workload that is as small as one can be. Writes one
// metric and a short trace, by its RANK and WORLD_SIZE:
//   OUTPUT/metrics/rank_%06d.jsonl   "loss of rank R", float32 bits; rank 0 also "lm loss"
//   OUTPUT/trace/rank_%06d.jsonl     one collective an iteration, with its digest's first bytes
// Options:
//   --steps N        iterations (default 3)
//   --wait FILE      goes on when FILE is there, at most 10 minutes
//   --exit CODE      ends so, once every rank has written
//   --exit-rank R    only rank R does; the others wait, as in a collective, until they are ended
//   --differ RUN     in the run of this name the last loss of the last rank is one bit off
//   --environment FILE   writes its own environment there, of rank 0
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

extern char** environ;

namespace {

namespace fs = std::filesystem;

long number(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? -1 : std::strtol(text, nullptr, 10);
}

/// A loss that only rank and step decide.
std::uint32_t loss_bits(long rank, int step) {
  const float loss = 11.0F / static_cast<float>(step) + static_cast<float>(rank) / 4096.0F;
  std::uint32_t bits = 0;
  std::memcpy(&bits, &loss, sizeof bits);
  return bits;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const fs::path output = argv[1];
  int steps = 3;
  int code = 0;
  long exit_rank = -1;
  std::string wait;
  std::string differ;
  std::string environment;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    const std::string value = argv[i + 1];
    if (option == "--steps") steps = std::stoi(value);
    if (option == "--wait") wait = value;
    if (option == "--exit") code = std::stoi(value);
    if (option == "--exit-rank") exit_rank = std::stol(value);
    if (option == "--differ") differ = value;
    if (option == "--environment") environment = value;
  }
  const long rank = number("RANK");
  const long world = number("WORLD_SIZE");
  if (rank < 0 || world < 1) {
    std::fprintf(stderr, "RANK or WORLD_SIZE is not set\n");
    return 3;
  }
  if (rank == 0 && !environment.empty()) {
    std::ofstream file(environment);
    for (char** entry = environ; *entry != nullptr; ++entry) file << *entry << '\n';
  }
  std::error_code ignored;
  fs::create_directories(output / "metrics", ignored);
  fs::create_directories(output / "trace", ignored);
  char name[32];
  std::snprintf(name, sizeof name, "rank_%06ld.jsonl", rank);
  std::ofstream metrics(output / "metrics" / name);
  std::ofstream trace(output / "trace" / name);
  const char* run = std::getenv("QUALIFY_RUN");
  const bool off = run != nullptr && differ == run && rank == world - 1;
  for (int step = 1; step <= steps; ++step) {
    std::uint32_t bits = loss_bits(rank, step);
    if (off && step == steps) bits ^= 1U;
    char value[16];
    std::snprintf(value, sizeof value, "0x%08" PRIx32, bits);
    metrics << "{\"iteration\": " << step << ", \"loss of rank " << rank << "\": \"" << value
            << "\"";
    if (rank == 0) metrics << ", \"lm loss\": \"" << value << "\"";
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    metrics << ", \"time\": " << std::chrono::nanoseconds(now).count() << "}\n";
    trace << "{\"event\": \"collective\", \"name\": \"all-reduce\", \"iteration\": " << step
          << ", \"rank\": " << rank << ", \"sequence\": " << step
          << ", \"fields\": {\"loss\": " << bits << "}}\n";
  }
  metrics.close();
  trace.close();
  if (!metrics || !trace) return 4;
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(10);
  while (!wait.empty() && !fs::exists(wait) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const auto written = [&] {
    const auto files = fs::directory_iterator(output / "metrics");
    return std::distance(begin(files), fs::directory_iterator());
  };
  while (code != 0 && written() < world && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  while (exit_rank >= 0 && rank != exit_rank && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return code;
}
