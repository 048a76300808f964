#pragma once

#include "execute.hpp"
#include "qualify/scheduler/pace.hpp"

namespace qualify::run {

/// Asks a scheduler that may be silent for a while (a controller restarts) until it answers:
/// questions become rarer, and end after Limits::silence.
/// Errors: those of `ask`, unavailable (for so long), interrupted (a stop meanwhile).
template <class Ask>
auto patiently(const Ports& ports, Ask&& ask) -> decltype(ask()) {
  scheduler::Pace pace;
  for (Duration silent{};; silent += pace.pause()) {
    auto answer = ask();
    if (answer || answer.error().code != Errc::unavailable || silent >= ports.limits.silence) {
      return answer;
    }
    if (ports.stop() != Stop::none) {
      return fail(Errc::interrupted, "stopped while the scheduler did not answer; no job is live",
                  answer.error().message, kGoOn);
    }
    pace.failed();
    ports.clock.sleep_for(pace.pause());
  }
}

}  // namespace qualify::run
