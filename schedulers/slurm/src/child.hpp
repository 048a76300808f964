#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "qualify/base/error.hpp"

namespace qualify::scheduler::slurm {

/// What a child process came to.
struct ChildEnd {
  bool well = false;    ///< it ended by itself, in time, after its work
  std::string result;   ///< what the work returned
  std::string printed;  ///< on either stream, without the newlines at the end
};

/// Does `work` in a child process: libslurm prints its complaints, may end the process, and may
/// wait for long, and none of that may happen to ours. The child is killed after `patience`.
/// Errors: io (no child could be made).
[[nodiscard]] Result<ChildEnd> in_child(const std::function<std::string()>& work,
                                        std::chrono::seconds patience);

}  // namespace qualify::scheduler::slurm
