#include <array>

#include "qualify/evidence/metrics.hpp"

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
  constexpr std::array<std::string_view, 10> exact = {
      "throughput",      "TFLOPs",  "tflops", "tokens per second", "samples per second", "tokens/s",
      "GPU utilization", "seconds", "time",   "wall_time"};
  for (const std::string_view word : exact) {
    if (name == word) return MetricKind::wall_clock;
  }
  if (ends("-time") || ends("_time") || ends("_time_s") || ends("-time-s") || ends("_seconds") ||
      ends("_ms") || name.starts_with("elapsed time") || name.starts_with("throughput") ||
      name.starts_with("timers/") || name.starts_with("time/") || has("per second") ||
      has("per_second") || has("per_sec") || has("TFLOP/s")) {
    return MetricKind::wall_clock;
  }
  return MetricKind::numeric;
}

}  // namespace qualify::evidence
