// claim_once FOLDER OWNER: the smallest program that claims an attempt; tests kill it at every
// step.
#include "qualify/run/watch.hpp"

/// It runs under strace, where LeakSanitizer cannot work: off, in builds that have one.
extern "C" int __lsan_is_turned_off() {  // NOLINT(bugprone-reserved-identifier): the runtime's name
  return 1;
}

int main(int argc, char** argv) {
  using namespace qualify;
  if (argc != 3) return 64;
  const auto claimed = run::claim_attempt(argv[1], argv[2]);
  return claimed ? 0 : static_cast<int>(exit_for(claimed.error().code));
}
