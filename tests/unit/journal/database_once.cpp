// database_once FILE [--transcript FILE] [--append N]
//
// The smallest program that opens a database, which migrates an older one, and appends N events to
// it: tests kill it at every step, and take its disk away. Says notes, and every event that is
// durable.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "qualify/journal/journal.hpp"

/// It runs under strace, where LeakSanitizer cannot work: off, in builds that have one.
extern "C" int __lsan_is_turned_off() {  // NOLINT(bugprone-reserved-identifier): the runtime's name
  return 1;
}

int main(int argc, char** argv) {
  using namespace qualify;
  if (argc < 2) return 64;
  journal::OpenOptions options;
  int events = 0;
  for (int i = 2; i + 1 < argc; i += 2) {
    if (argv[i] == std::string("--transcript")) options.transcript = argv[i + 1];
    if (argv[i] == std::string("--append")) events = std::stoi(argv[i + 1]);
  }
  const auto stop = [](const Error& error) {
    std::cerr << error.describe() << '\n';
    return static_cast<int>(exit_for(error.code));
  };
  auto database = journal::Database::open(argv[1], options);
  if (!database) return stop(database.error());
  for (const std::string& note : database->notes()) std::cout << note << std::endl;
  journal::Journal journal(*database);
  for (int i = 0; i < events; ++i) {
    const auto event = journal.append(Time(std::chrono::seconds(1767225600 + i)), {}, {}, 0,
                                      "test.event", {{"number", i}});
    if (!event) return stop(event.error());
    std::cout << "durable " << event->sequence << std::endl;
  }
  return 0;
}
