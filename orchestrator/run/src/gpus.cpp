#include "gpus.hpp"

#include <dlfcn.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

namespace qualify::run {

namespace {

// The part of NVML's C interface that is used; it is loaded at run time, because most machines that
// build or plan have no driver.
using Device = void*;
constexpr unsigned kSm = 1;
constexpr unsigned kMemory = 2;
constexpr unsigned kUncorrected = 1;
constexpr unsigned kSinceBoot = 0;
constexpr std::size_t kTextSize = 128;

struct Unload {
  void operator()(void* handle) const { ::dlclose(handle); }
};

class Nvml {
 public:
  explicit Nvml(const std::string& library) : handle_(::dlopen(library.c_str(), RTLD_NOW)) {
    if (handle_ == nullptr) {
      const char* why = ::dlerror();
      fault_ = why == nullptr ? "cannot load " + library : why;
      return;
    }
    const auto status = call<int()>("nvmlInit_v2");
    ready_ = status == 0;
    if (!ready_) fault_ = "nvmlInit: " + error(status.value_or(-1));
  }
  ~Nvml() {
    if (ready_) call<int()>("nvmlShutdown");
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] const std::string& fault() const { return fault_; }

  /// The function's answer; nothing when this driver has no such function.
  template <class Signature, class... Arguments>
  std::optional<int> call(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<Signature*>(::dlsym(handle_.get(), name));
    if (function == nullptr) return std::nullopt;
    return function(arguments...);
  }

  /// A text that the function writes, or null.
  template <class... Arguments>
  [[nodiscard]] Json text(const char* name, Arguments... arguments) const {
    std::array<char, kTextSize> buffer{};
    const auto status = call<int(Arguments..., char*, unsigned)>(
        name, arguments..., buffer.data(), static_cast<unsigned>(buffer.size() - 1));
    return status == 0 ? Json(buffer.data()) : Json(nullptr);
  }

  /// A number that the function writes, or null.
  template <class Number, class... Arguments>
  [[nodiscard]] Json number(const char* name, Arguments... arguments) const {
    Number value{};
    const auto status = call<int(Arguments..., Number*)>(name, arguments..., &value);
    return status == 0 ? Json(value) : Json(nullptr);
  }

 private:
  [[nodiscard]] std::string error(int status) const {
    const auto describe =
        reinterpret_cast<const char* (*)(int)>(::dlsym(handle_.get(), "nvmlErrorString"));
    return describe == nullptr ? "error " + std::to_string(status) : describe(status);
  }

  std::unique_ptr<void, Unload> handle_;
  bool ready_ = false;
  std::string fault_;
};

/// The current one of (current, pending): true, false or null.
Json mode(const Nvml& nvml, const char* name, Device device) {
  unsigned current = 0;
  unsigned pending = 0;
  const auto status =
      nvml.call<int(Device, unsigned*, unsigned*)>(name, device, &current, &pending);
  return status == 0 ? Json(current != 0) : Json(nullptr);
}

Json describe(const Nvml& nvml, unsigned index) {
  Device device = nullptr;
  if (nvml.call<int(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2", index, &device) != 0) {
    return {{"index", index}, {"uuid", nullptr}};
  }
  using Count = unsigned long long;
  return {
      {"index", index},
      {"uuid", nvml.text("nvmlDeviceGetUUID", device)},
      {"name", nvml.text("nvmlDeviceGetName", device)},
      {"vbios", nvml.text("nvmlDeviceGetVbiosVersion", device)},
      {"sm_mhz", nvml.number<unsigned>("nvmlDeviceGetClockInfo", device, kSm)},
      {"memory_mhz", nvml.number<unsigned>("nvmlDeviceGetClockInfo", device, kMemory)},
      {"max_sm_mhz", nvml.number<unsigned>("nvmlDeviceGetMaxClockInfo", device, kSm)},
      {"max_memory_mhz", nvml.number<unsigned>("nvmlDeviceGetMaxClockInfo", device, kMemory)},
      {"application_sm_mhz", nvml.number<unsigned>("nvmlDeviceGetApplicationsClock", device, kSm)},
      {"power_limit_mw", nvml.number<unsigned>("nvmlDeviceGetEnforcedPowerLimit", device)},
      {"ecc", mode(nvml, "nvmlDeviceGetEccMode", device)},
      {"mig", mode(nvml, "nvmlDeviceGetMigMode", device)},
      {"uncorrected_ecc_errors",
       nvml.number<Count>("nvmlDeviceGetTotalEccErrors", device, kUncorrected, kSinceBoot)},
      {"clock_limits", nvml.number<Count>("nvmlDeviceGetCurrentClocksThrottleReasons", device)}};
}

}  // namespace

Json describe_gpus(const std::string& library) {
  Json record = {
      {"driver", nullptr}, {"cuda", nullptr}, {"fault", nullptr}, {"gpus", Json::array()}};
  const Nvml nvml(library);
  if (!nvml.ready()) {
    record["fault"] = nvml.fault();
    return record;
  }
  record["driver"] = nvml.text("nvmlSystemGetDriverVersion");
  int cuda = 0;
  if (nvml.call<int(int*)>("nvmlSystemGetCudaDriverVersion_v2", &cuda) == 0) {
    record["cuda"] = std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
  }
  unsigned count = 0;
  if (nvml.call<int(unsigned*)>("nvmlDeviceGetCount_v2", &count) != 0) {
    record["fault"] = "the driver does not tell how many GPUs there are";
    return record;
  }
  for (unsigned index = 0; index < count; ++index) {
    record["gpus"].push_back(describe(nvml, index));
  }
  return record;
}

}  // namespace qualify::run
