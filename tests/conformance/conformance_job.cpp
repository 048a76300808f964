#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "qualify/base/clock.hpp"
#include "qualify/scheduler/local.hpp"

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "local-supervisor") {
    qualify::SystemClock clock;
    return qualify::scheduler::supervise_local_job(argv[2], clock);
  }
  if (argc == 3 && std::string_view(argv[1]) == "job") {
    ::execl("/bin/sh", "sh", argv[2], static_cast<char*>(nullptr));
  }
  std::fprintf(stderr, "usage: conformance_job job PLAN | local-supervisor FOLDER\n");
  return 2;
}
