#include <nlohmann/json.hpp>
#include <sstream>

#include "qualify/run/evidence.hpp"

namespace qualify::run {

namespace {

template <class Number>
std::optional<Number> number(const nlohmann::json& gpu, const char* key) {
  const auto found = gpu.find(key);
  if (found == gpu.end() || !found->is_number()) return std::nullopt;
  return found->get<Number>();
}

void add(const std::string& node, const nlohmann::json& record, bool after,
         std::vector<policy::GpuReading>& readings) {
  if (record.is_null()) return;
  for (const auto& gpu : record.at("gpus").at("gpus")) {
    if (!gpu.at("uuid").is_string()) continue;  // one that the driver would not open
    readings.push_back({node, gpu.at("uuid").get<std::string>(), after,
                        number<std::uint32_t>(gpu, "application_sm_mhz"),
                        number<std::uint32_t>(gpu, "power_limit_mw"),
                        number<std::uint64_t>(gpu, "clock_limits")});
  }
}

}  // namespace

std::vector<policy::GpuReading> gpu_readings(const std::string& nodes_jsonl) {
  std::vector<policy::GpuReading> readings;
  std::istringstream lines(nodes_jsonl);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    const auto node = nlohmann::json::parse(line);
    const auto name = node.at("node").get<std::string>();
    add(name, node.at("verify"), false, readings);
    add(name, node.at("collect"), true, readings);
  }
  return readings;
}

}  // namespace qualify::run
