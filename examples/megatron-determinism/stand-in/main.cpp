// megatron_stand_in: what a rehearsal runs in the place of pretrain_gpt.py and its like. See
// ../README.md.
#include <chrono>
#include <iostream>
#include <optional>
#include <random>

#include "arguments.hpp"
#include "event_file.hpp"
#include "model.hpp"
#include "record.hpp"
#include "step_times.hpp"

namespace {

using namespace stand_in;

std::uint64_t fresh() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

/// A share for each rank; of so many that it would take long, as few as do, which several ranks
/// have in common.
std::size_t shares_of(std::int64_t world_size) {
  return world_size <= kMostShares ? static_cast<std::size_t>(world_size) : 64;
}

/// As Megatron-LM: the last rank writes them.
void write_metrics(quickstart::EventFile& metrics, std::int64_t number, const Iteration& values,
                   float rate, float seconds) {
  const auto now = std::chrono::system_clock::now();
  metrics.scalar("learning-rate", rate, number, now);
  metrics.scalar("lm loss", values.loss, number, now);
  metrics.scalar("grad-norm", values.gradient_norm, number, now);
  metrics.scalar("num-zeros", values.zeros, number, now);
  if (number > 1) metrics.scalar("iteration-time", seconds, number, now);
}

void train(const Arguments& arguments) {
  const std::size_t shares = shares_of(arguments.world_size);
  const std::size_t own = static_cast<std::size_t>(arguments.rank) % shares;
  Model model(arguments.seed, shares,
              arguments.deterministic ? std::nullopt : std::optional(fresh()));
  StepTimes times(arguments.deterministic, !arguments.trace.empty(), fresh());
  Record record(arguments);
  std::optional<quickstart::EventFile> metrics;
  if (!arguments.tensorboard.empty() && arguments.rank == arguments.world_size - 1) {
    std::filesystem::create_directories(arguments.tensorboard);
    metrics.emplace(arguments.tensorboard, std::chrono::system_clock::now());
  }
  const float rate = 0.05F;
  for (std::int64_t number = 1; number <= arguments.train_iters; ++number) {
    std::optional<std::size_t> wrong;
    if (arguments.plant && arguments.plant->iteration == number) {
      wrong = static_cast<std::size_t>(arguments.plant->rank);
    }
    Iteration values = model.step(own, wrong, rate);
    record.iteration(number, values);
    if (metrics) write_metrics(*metrics, number, values, rate, times.next());
  }
  if (metrics) metrics->flush();
  record.end();
}

}  // namespace

int main(int argc, char** argv) {
  const Invocation invocation = read_arguments(argc, argv);
  if (!invocation.arguments) {
    (invocation.exit_code == 0 ? std::cout : std::cerr) << invocation.text;
    return invocation.exit_code;
  }
  try {
    train(*invocation.arguments);
  } catch (const std::exception& error) {
    std::cerr << "megatron_stand_in: " << error.what() << "\n";
    return 3;
  }
  return 0;
}
