#pragma once

#include <string>

#include "qualify/base/json.hpp"

namespace qualify::run {

/// Driver and GPUs of this node as NVML tells them, one record:
///   {"driver": "570.86.15", "cuda": "12.8", "fault": null, "gpus": [{"index", "uuid", "name",
///    "vbios", "sm_mhz", "memory_mhz", "max_sm_mhz", "max_memory_mhz", "application_sm_mhz",
///    "power_limit_mw", "ecc", "mig", "uncorrected_ecc_errors", "clock_limits"}, …]}
/// What the driver does not tell is null. Without a driver all is null and `fault` says why: that
/// is no error here. `library`: "libnvidia-ml.so.1", found as the loader finds it.
/// Source of names and values: NVML API reference (nvmlDeviceGet…; clock types 1 = SM, 2 = memory).
[[nodiscard]] Json describe_gpus(const std::string& library);

}  // namespace qualify::run
