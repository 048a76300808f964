// rebuild_once STATE: the smallest program that rebuilds; tests kill it at every step.
#include <iostream>

#include "qualify/rebuild/rebuild.hpp"

/// It runs under strace, where LeakSanitizer cannot work: off, in builds that have one.
extern "C" int __lsan_is_turned_off() {  // NOLINT(bugprone-reserved-identifier): the runtime's name
  return 1;
}

int main(int argc, char** argv) {
  using namespace qualify;
  if (argc != 2) return 64;
  const auto done = rebuild::rebuild(argv[1], Time(std::chrono::seconds(1767300000)), "op");
  if (!done) {
    std::cerr << done.error().describe() << '\n';
    return static_cast<int>(exit_for(done.error().code));
  }
  return 0;
}
