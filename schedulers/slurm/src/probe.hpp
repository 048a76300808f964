#pragma once

#include "qualify/base/error.hpp"

namespace qualify::scheduler::slurm {

/// Whether libslurm finds a configuration. Asked in a child process, because libslurm ends the
/// process when it finds none (and tries for a minute before). Errors: unavailable, with what
/// libslurm printed.
[[nodiscard]] Result<void> configuration_is_there();

}  // namespace qualify::scheduler::slurm
