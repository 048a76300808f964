#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What the GPUs of a run said of their clocks, before and after it. Reported beside an overhead:
/// an arm on slower clocks is slower for no reason of its own. Pure; any thread.
namespace qualify::policy {

/// One GPU at one moment. Absent: the driver does not tell.
struct GpuReading {
  std::string node;
  std::string uuid;
  bool after = false;                               ///< read after the workload, else before it
  std::optional<std::uint32_t> application_sm_mhz;  ///< what it is set to run at
  std::optional<std::uint32_t> power_limit_mw;
  /// Bits of nvmlClocksThrottleReasons / nvmlClocksEventReasons (nvml.h).
  std::optional<std::uint64_t> clock_limits;
};

/// Names of the set bits that take speed away: "hardware slowdown", "power cap", …; idleness and
/// application clocks are not among them. An unknown bit is named by its number.
[[nodiscard]] std::vector<std::string> slowing_limits(std::uint64_t clock_limits);

struct RunClocks {
  std::string run;
  std::vector<GpuReading> gpus;
};

/// One line for people: how many GPUs, their clock settings, and what held them down.
/// "no GPU clocks were recorded" when no run has any.
[[nodiscard]] std::string clocks_summary(const std::vector<RunClocks>& runs);

/// What weakens a comparison of these runs' times: a GPU that was held down by heat, power or
/// hardware, and settings that are not the same in all runs. One line each, the run named.
[[nodiscard]] std::vector<std::string> clock_limits(const std::vector<RunClocks>& runs);

}  // namespace qualify::policy
