#include <array>

#include "source.hpp"

namespace qualify::evidence {

MetricKind kind_of(const std::string& metric) {
  const std::string_view name = metric;
  const auto ends = [&](std::string_view tail) { return name.ends_with(tail); };
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  // Megatron-LM: report_memory's and training_log's tags; Bridge: "peak_mem", "… memory (GB)".
  if (name.starts_with("mem-") || ends("-bytes") || has("memory") || has("max_mem") ||
      has("peak_mem")) {
    return MetricKind::memory;
  }
  constexpr std::array<std::string_view, 13> exact = {"throughput",
                                                      "TFLOPs",
                                                      "tflops",
                                                      "tokens per second",
                                                      "samples per second",
                                                      "tokens/s",
                                                      "GPU utilization",
                                                      "seconds",
                                                      "time",
                                                      "wall_time",
                                                      "timestamp",
                                                      "_timestamp",
                                                      "_runtime"};
  for (const std::string_view word : exact) {
    if (name == word) return MetricKind::wall_clock;
  }
  if (ends("-time") || ends("_time") || ends("_time_s") || ends("-time-s") || ends("_seconds") ||
      ends("_ms") || name.starts_with("elapsed time") || name.starts_with("throughput") ||
      name.starts_with("rank-time/") || name.starts_with("timers/") || name.starts_with("time/") ||
      has("per second") || has("per_second") || has("per_sec") || has("TFLOP/s")) {
    return MetricKind::wall_clock;
  }
  return MetricKind::numeric;
}

std::string tag_of(std::string_view column) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> tags = {{
      {"lm_loss", "lm loss"},
      {"num_zeros", "num-zeros"},
      {"grad_norm", "grad-norm"},
      {"params_norm", "params-norm"},
      {"learning_rate", "learning-rate"},
      {"lr", "learning-rate"},
      {"loss_scale", "loss-scale"},
      {"batch_size", "batch-size"},
      {"global_batch_size", "batch-size"},
      {"iteration_time", "iteration-time"},
      {"iteration_time_s", "iteration-time"},
      {"consumed_samples", "consumed samples"},
  }};
  for (const auto& [name, tag] : tags) {
    if (name == column) return std::string(tag);
  }
  return std::string(column);
}

bool names_iteration(std::string_view name) {
  return name == "iteration" || name == "step" || name == "global_step" || name == "_step" ||
         name == "iter";
}

bool names_time(std::string_view name) {
  return name == "timestamp" || name == "_timestamp" || name == "time" || name == "wall_time" ||
         name == "ts" || name == "date";
}

}  // namespace qualify::evidence
