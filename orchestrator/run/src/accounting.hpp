#pragma once

#include <optional>
#include <string>

#include "qualify/scheduler/scheduler.hpp"

namespace qualify::run {

/// Accounting's word on a job that the scheduler has forgotten. It lags behind: that it has
/// nothing, or not the end, never says that the job did not run.
struct AccountedJob {
  std::optional<scheduler::Job> over;  ///< it is over, and this is how
  std::string id;                      ///< its number, where accounting has heard of it at all
  std::string reason;                  ///< why it cannot say how the job ended
  bool may_come = false;               ///< asking again may help
};

/// `name`, `nonce`: those of the job's request. Errors: integrity (two jobs of one nonce).
[[nodiscard]] Result<AccountedJob> ask_accounting(scheduler::Scheduler& scheduler,
                                                  const scheduler::Grant& grant,
                                                  const std::string& name,
                                                  const std::string& nonce);

}  // namespace qualify::run
