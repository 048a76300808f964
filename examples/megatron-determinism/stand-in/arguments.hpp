#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "qualify/tracer/tracer.h"

namespace stand_in {

/// Up to so many ranks each has a share of the batch, and a wrong bit, of its own.
inline constexpr std::int64_t kMostShares = 512;

/// One bit of one rank's activations that comes out wrong on purpose.
struct Plant {
  std::int64_t iteration = 0;
  std::int64_t rank = 0;
};

/// What is used of Megatron-LM's command line and of the environment; everything else that a recipe
/// says is taken and left alone.
struct Arguments {
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  std::uint64_t seed = 1234;             ///< --seed
  std::int64_t train_iters = 50;         ///< --train-iters
  bool deterministic = false;            ///< --deterministic-mode
  std::filesystem::path tensorboard;     ///< --tensorboard-dir; empty: no metrics
  std::filesystem::path trace;           ///< --determinism-trace-dir; empty: no traces
  qtrace_level trace_level = QTRACE_L0;  ///< --determinism-trace-mode
  std::filesystem::path capture_plan;    ///< QUALIFY_CAPTURE_PLAN; empty: the level everywhere
  std::optional<Plant> plant;            ///< DETERMINISM_PLANT=ITERATION:RANK
};

/// What main does after reading the command line.
struct Invocation {
  std::optional<Arguments> arguments;  ///< absent: print `text`, end with `exit_code`
  std::string text;
  int exit_code = 0;
};

[[nodiscard]] Invocation read_arguments(int argc, const char* const* argv);

}  // namespace stand_in
