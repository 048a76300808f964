#pragma once

#include "qualify/run/qualification.hpp"

namespace qualify::cli {

/// From now on SIGINT asks to cancel and SIGTERM and SIGHUP to detach, instead of ending the
/// process. A second SIGINT ends it at once.
void catch_stop_signals();

/// What has been asked for so far. Async-signal-safe state; callable from anywhere.
[[nodiscard]] run::Stop stop_requested();

}  // namespace qualify::cli
