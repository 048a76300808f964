#pragma once

#include <stdexcept>

/// What can go wrong in a run, by the exit code that it ends in. Thrown in any rank's thread,
/// turned into an exit code in main.cpp alone.
namespace quickstart {

/// Exit 2: a setting, the text or a checkpoint is not what it must be. Nothing was trained.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Exit 1: training went wrong (a loss that is not a number).
struct TrainingError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Exit 3: the operating system refused a write.
struct OutputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace quickstart
