#pragma once

#include <filesystem>
#include <string>

#include "qualify/run/node.hpp"

namespace qualify::run {

inline constexpr const char* kVerifyEnding = ".verify.json";
inline constexpr const char* kEnvironmentEnding = ".environment";
inline constexpr const char* kFirstFailureFile = "first-failure";  ///< src/task.sh
inline constexpr const char* kCollectEnding = ".collect.json";

inline std::filesystem::path node_file(const JobPlan& plan, const std::string& name,
                                       const char* ending) {
  return plan.folder / kNodesFolder / (name + ending);
}

}  // namespace qualify::run
