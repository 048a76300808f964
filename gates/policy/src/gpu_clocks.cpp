#include "qualify/policy/gpu_clocks.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace qualify::policy {

namespace {

struct Reason {
  std::uint64_t bit;
  const char* name;  ///< null: takes no speed away that was not meant
};
/// nvml.h, "Event reasons for clocks" (before driver 535: "throttle reasons").
constexpr std::array kReasons = {
    Reason{0x001, nullptr},  // idle
    Reason{0x002, nullptr},  // application clocks setting
    Reason{0x004, "software power cap"},
    Reason{0x008, "hardware slowdown"},
    Reason{0x010, "sync boost with a slower GPU"},
    Reason{0x020, "software thermal slowdown"},
    Reason{0x040, "hardware thermal slowdown"},
    Reason{0x080, "hardware power brake"},
    Reason{0x100, nullptr},  // display clock setting
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// "1980", "1410 to 1980", or empty.
std::string range_of(const std::set<std::uint32_t>& values) {
  if (values.empty()) return {};
  if (values.size() == 1) return std::to_string(*values.begin());
  return std::to_string(*values.begin()) + " to " + std::to_string(*values.rbegin());
}

struct Settings {
  std::set<std::uint32_t> application_mhz;
  std::set<std::uint32_t> power_w;
  bool operator==(const Settings&) const = default;

  [[nodiscard]] std::string describe() const {
    std::vector<std::string> parts;
    if (const auto mhz = range_of(application_mhz); !mhz.empty()) {
      parts.push_back("SM set to " + mhz + " MHz");
    }
    if (const auto watts = range_of(power_w); !watts.empty()) {
      parts.push_back("power limit " + watts + " W");
    }
    return parts.empty() ? "settings not told" : joined(parts);
  }
};

Settings settings_of(const RunClocks& run) {
  Settings settings;
  for (const GpuReading& gpu : run.gpus) {
    if (gpu.application_sm_mhz) settings.application_mhz.insert(*gpu.application_sm_mhz);
    if (gpu.power_limit_mw) settings.power_w.insert(*gpu.power_limit_mw / 1000);
  }
  return settings;
}

/// What held GPUs down, and which: by the limits' names.
std::map<std::string, std::set<std::string>> slowed(const RunClocks& run) {
  std::map<std::string, std::set<std::string>> by_reason;
  for (const GpuReading& gpu : run.gpus) {
    if (!gpu.clock_limits) continue;
    const auto reasons = slowing_limits(*gpu.clock_limits);
    if (!reasons.empty()) by_reason[joined(reasons)].insert("node " + gpu.node + " " + gpu.uuid);
  }
  return by_reason;
}

}  // namespace

std::vector<std::string> slowing_limits(std::uint64_t clock_limits) {
  std::vector<std::string> names;
  for (const Reason& reason : kReasons) {
    if ((clock_limits & reason.bit) != 0 && reason.name != nullptr) names.emplace_back(reason.name);
    clock_limits &= ~reason.bit;
  }
  for (unsigned bit = 0; bit < 64; ++bit) {
    if ((clock_limits >> bit & 1U) != 0) names.push_back("limit " + std::to_string(bit));
  }
  return names;
}

std::string clocks_summary(const std::vector<RunClocks>& runs) {
  std::set<std::string> gpus;
  std::set<std::string> reasons;
  RunClocks all;
  for (const RunClocks& run : runs) {
    for (const GpuReading& gpu : run.gpus) {
      gpus.insert(gpu.uuid);
      all.gpus.push_back(gpu);
    }
    for (const auto& [reason, where] : slowed(run)) reasons.insert(reason);
  }
  if (gpus.empty()) return "no GPU clocks were recorded";
  return std::to_string(gpus.size()) + (gpus.size() == 1 ? " GPU, " : " GPUs, ") +
         settings_of(all).describe() + "; held down by: " +
         (reasons.empty() ? "nothing" : joined({reasons.begin(), reasons.end()}));
}

std::vector<std::string> clock_limits(const std::vector<RunClocks>& runs) {
  std::vector<std::string> limits;
  const RunClocks* first = nullptr;
  for (const RunClocks& run : runs) {
    if (run.gpus.empty()) continue;
    for (const auto& [reason, where] : slowed(run)) {
      limits.push_back(
          "run " + run.run + ": clocks were held down by " + reason + " on " + *where.begin() +
          (where.size() > 1 ? " and " + std::to_string(where.size() - 1) + " further GPUs"
                            : std::string()));
    }
    if (first == nullptr) {
      first = &run;
    } else if (!(settings_of(run) == settings_of(*first))) {
      limits.push_back("runs " + first->run + " and " + run.run + " had other clock settings: " +
                       settings_of(*first).describe() + " against " + settings_of(run).describe());
    }
  }
  return limits;
}

}  // namespace qualify::policy
