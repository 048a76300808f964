#pragma once

#include <atomic>
#include <cstdint>
#include <ostream>

#include "settings.hpp"

namespace quickstart {

enum class Ending {
  finished,  ///< all iterations are done
  stopped,   ///< `stop` was set: the iteration was ended and a checkpoint saved
};

/// Trains in `settings.ranks` threads and returns when all have ended. `log` gets the last rank's
/// lines. `stop` may be set at any time, from a signal handler too.
/// Throws InputError, TrainingError, OutputError: the first that any rank met.
Ending train(const Settings& settings, std::ostream& log, const std::atomic<bool>& stop);

}  // namespace quickstart
