// Stands for the driver's libnvidia-ml.so.1: two GPUs, one of which has no application clocks. What
// it says is steered by the file QUALIFY_FAKE_NVML names: "broken", or a count of memory errors.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace {

std::string said() {
  std::string text;
  if (const char* file = std::getenv("QUALIFY_FAKE_NVML")) std::ifstream(file) >> text;
  return text;
}

int put(const std::string& value, char* text, unsigned size) {
  std::strncpy(text, value.c_str(), size);
  return 0;
}

int device_of(void* handle) {
  return static_cast<int>(reinterpret_cast<std::size_t>(handle)) - 1;
}

}  // namespace

#define FAKE_NVML extern "C" __attribute__((visibility("default")))

FAKE_NVML int nvmlInit_v2() {
  return said() == "broken" ? 9 : 0;
}
FAKE_NVML int nvmlShutdown() {
  return 0;
}
FAKE_NVML const char* nvmlErrorString(int) {
  return "Driver Not Loaded";
}
FAKE_NVML int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  return put("570.86.15", text, size);
}
FAKE_NVML int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 12080;
  return 0;
}
FAKE_NVML int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
FAKE_NVML int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  *handle = reinterpret_cast<void*>(static_cast<std::size_t>(index) + 1);
  return 0;
}
FAKE_NVML int nvmlDeviceGetUUID(void* handle, char* text, unsigned size) {
  return put("GPU-0000000" + std::to_string(device_of(handle)), text, size);
}
FAKE_NVML int nvmlDeviceGetName(void*, char* text, unsigned size) {
  return put("NVIDIA H200", text, size);
}
FAKE_NVML int nvmlDeviceGetClockInfo(void*, unsigned type, unsigned* mhz) {
  *mhz = type == 1 ? 1980 : 3201;
  return 0;
}
FAKE_NVML int nvmlDeviceGetApplicationsClock(void* handle, unsigned, unsigned* mhz) {
  *mhz = 1980;
  return device_of(handle) == 0 ? 0 : 3;  // 3: not supported
}
FAKE_NVML int nvmlDeviceGetEccMode(void*, unsigned* current, unsigned* pending) {
  *current = *pending = 1;
  return 0;
}
FAKE_NVML int nvmlDeviceGetTotalEccErrors(void*, unsigned, unsigned, unsigned long long* count) {
  const std::string text = said();
  *count = text.empty() ? 0 : std::strtoull(text.c_str(), nullptr, 10);
  return 0;
}
