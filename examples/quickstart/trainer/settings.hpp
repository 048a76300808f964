#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace quickstart {

/// In which order the ranks' gradients are added.
enum class Reduction {
  ordered,  ///< rank 0, 1, 2, … for every element: the same bits in every launch
  arrival,  ///< as the ranks get there: float addition is not associative, so the bits vary
};
[[nodiscard]] const char* name_of(Reduction reduction);

/// What every rank records: nothing, summaries, device digests, SHA-256 of every value.
enum class Trace { none, L0, L1, full };

/// A divergence planted on purpose, so that finding it can be tried: another first token of
/// one rank's batch, one bit of its gradient before the ranks' sum, or of what it got of the sum.
enum class Planted { tokens, gradient, sum };
struct Plant {
  Planted what = Planted::gradient;
  unsigned rank = 0;
  std::int64_t iteration = 0;
};

/// One run, complete. Names follow Megatron-LM's arguments where it has them.
struct Settings {
  std::filesystem::path text;    ///< the training text
  std::filesystem::path output;  ///< everything is written below it
  std::optional<std::filesystem::path> resume;
  std::int64_t ckpt_step = 0;  ///< which checkpoint below `resume`; 0 = the latest
  bool no_load_optim = false;  ///< leave the optimizer's state behind: a resume that is wrong

  unsigned ranks = 4;
  Reduction reduction = Reduction::ordered;
  Trace trace = Trace::full;
  std::filesystem::path capture_plan;  ///< what to record where; empty: `trace` everywhere
  std::optional<Plant> plant;

  std::int64_t train_iters = 150;
  unsigned micro_batch_size = 48;  ///< samples a rank and iteration
  unsigned context = 16;           ///< characters seen before the one to predict
  unsigned embedding = 16;         ///< floats a character
  unsigned hidden = 128;
  std::uint64_t seed = 1234;

  double lr = 3e-3;
  double min_lr = 3e-4;
  std::int64_t lr_warmup_iters = 10;
  double clip_grad = 1.0;          ///< 0 = no clipping
  std::int64_t save_interval = 0;  ///< iterations between checkpoints; 0 = at the end only

  [[nodiscard]] unsigned global_batch_size() const { return ranks * micro_batch_size; }
};

/// What main does after reading the command line.
struct Invocation {
  std::optional<Settings> settings;  ///< absent: print `text` and exit with `exit_code`
  std::string text;
  int exit_code = 0;
};

/// Reads the command line and, through --config, a file of `key = value` lines with the same names;
/// the command line wins. Bad input comes back as a text and exit code 2.
[[nodiscard]] Invocation read_settings(int argc, const char* const* argv);

}  // namespace quickstart
