#include "qualify/scheduler/scheduler.hpp"

namespace qualify::scheduler {

Result<std::vector<Job>> Scheduler::accounted(const std::string&, const std::string&, Time) {
  return fail(Errc::unsupported, "accounting is not configured");
}

Result<Snapshot> take_snapshot(Scheduler& scheduler) {
  Snapshot snapshot;
  const auto take = [](auto& target, auto&& result) -> Result<void> {
    if (!result) return tl::unexpected(result.error());
    target = std::move(*result);
    return {};
  };
  auto taken = take(snapshot.now, scheduler.now());
  if (taken) taken = take(snapshot.reservations, scheduler.reservations());
  if (taken) taken = take(snapshot.nodes, scheduler.nodes());
  if (taken) taken = take(snapshot.jobs, scheduler.jobs());
  if (!taken) return tl::unexpected(taken.error());
  return snapshot;
}

}  // namespace qualify::scheduler
