#include "qualify/scheduler/job_watch.hpp"

namespace qualify::scheduler {

namespace {

/// What of a job can change while it lives.
Digest state_of(const Job& job) {
  Sha256 hash;
  const auto add = [&](const std::string& text) {
    hash.update(text);
    hash.update(std::string_view("\0", 1));
  };
  add(job.id);
  add(name_of(job.state));
  add(job.reason);
  add(job.reservation);
  add(std::to_string(job.restart_count));
  add(job.held_by_reservation_end ? "held" : "");
  for (const std::string& node : job.nodes) add(node);
  return hash.finish();
}

}  // namespace

Result<std::vector<JobWatch::Change>> JobWatch::poll() {
  const Time before = clock_.now();
  auto jobs = scheduler_.jobs();
  const Duration took = clock_.now() - before;
  if (!jobs) {
    pace_.failed();
    return tl::unexpected(jobs.error());
  }
  std::vector<Change> changes;
  std::unordered_map<std::string, bool> there;
  for (Job& job : *jobs) {
    if (job.nonce.empty()) continue;
    const auto found = seen_.find(job.nonce);
    if (found == seen_.end()) continue;
    there[job.nonce] = true;
    const Digest now = state_of(job);
    if (found->second.job == now) continue;
    found->second = {true, now};
    changes.push_back({job.nonce, std::move(job)});
  }
  for (auto& [nonce, seen] : seen_) {
    if (there.contains(nonce) || (seen.asked && !seen.job)) continue;
    seen = {true, std::nullopt};
    changes.push_back({nonce, std::nullopt});
  }
  pace_.answered(!changes.empty(), took);
  return changes;
}

}  // namespace qualify::scheduler
