#pragma once

#include <filesystem>
#include <memory>

#include "qualify/scheduler/scheduler.hpp"

namespace qualify::scheduler {

/// Loads a run-time backend and creates its scheduler. The module stays loaded until the process
/// ends. Errors: unavailable (cannot be loaded: the system's own text), unsupported (built for
/// another interface version), those of the module.
[[nodiscard]] Result<std::unique_ptr<Scheduler>> load_module(const std::filesystem::path& file);

/// What the module says of itself ("slurm (libslurm 22.05.8)"), without creating a scheduler.
/// Errors: as load_module.
[[nodiscard]] Result<std::string> describe_module(const std::filesystem::path& file);

}  // namespace qualify::scheduler
