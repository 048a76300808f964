#include "accounting.hpp"

#include <algorithm>

namespace qualify::run {

Result<AccountedJob> ask_accounting(scheduler::Scheduler& scheduler, const scheduler::Grant& grant,
                                    const std::string& name, const std::string& nonce) {
  // A day more than any two clocks may differ.
  const Time since = std::min(grant.granted_at, grant.reservation.start) - std::chrono::hours(24);
  auto known = scheduler.accounted(name, nonce, since);
  AccountedJob answer;
  if (!known) {
    answer.may_come = known.error().code == Errc::unavailable;
    answer.reason = known.error().message;
    return answer;
  }
  if (known->size() > 1) {
    return fail(Errc::integrity, "two jobs carry the nonce of one attempt", nonce);
  }
  answer.may_come = true;
  if (known->empty()) {
    answer.reason = "accounting does not know it yet";
    return answer;
  }
  scheduler::Job& job = known->front();
  answer.id = job.id;
  if (is_terminal(job.state)) {
    answer.over = std::move(job);
  } else {
    answer.reason = std::string("accounting still has it as ") + name_of(job.state);
  }
  return answer;
}

}  // namespace qualify::run
