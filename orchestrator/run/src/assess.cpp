#include <algorithm>

#include "qualify/run/evidence.hpp"

namespace qualify::run {

namespace {

using scheduler::JobState;

Assessment failed(FailureClass failure_class, std::string why) {
  return {false, std::move(why), failure_class};
}

std::string with_reason(std::string text, const scheduler::Job& job) {
  if (!job.reason.empty()) text += ": " + job.reason;
  return text;
}

/// "gpu0001, gpu0002 and 382 more".
std::string list(const std::vector<std::string>& nodes) {
  constexpr std::size_t kShown = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(nodes.size(), kShown); ++i) {
    text += (text.empty() ? "" : ", ") + nodes[i];
  }
  if (nodes.size() > kShown) text += " and " + std::to_string(nodes.size() - kShown) + " more";
  return text.empty() ? "no node" : text;
}

}  // namespace

Assessment assess(const scheduler::Job& job, const std::optional<Sentinel>& sentinel,
                  const std::string& nonce, const Digest& bundle) {
  const std::string state = name_of(job.state);
  switch (job.state) {
    case JobState::cancelled:
      return failed(FailureClass::cancelled, with_reason("the job was cancelled", job));
    case JobState::node_fail:
    case JobState::preempted:
    case JobState::boot_fail:
    case JobState::deadline:
      return failed(FailureClass::infrastructure, with_reason("the job ended as " + state, job));
    case JobState::timeout:
    case JobState::out_of_memory:
      return failed(FailureClass::workload, with_reason("the job ended as " + state, job));
    case JobState::failed:
      if (!sentinel && job.exit_code == kNoRoomExit) {
        return failed(FailureClass::infrastructure,
                      "the job left no result: the disk of the state was full");
      }
      if (!sentinel) {
        return failed(FailureClass::workload,
                      with_reason("the job failed and left no result", job));
      }
      if (sentinel->failure.empty()) {
        return failed(FailureClass::disagreement,
                      "the scheduler says failed, the job's own result says success");
      }
      // What a node found before or after the workload is not the workload's doing.
      return failed(sentinel->stage == "verify" || sentinel->stage == "collect"
                        ? FailureClass::infrastructure
                        : FailureClass::workload,
                    sentinel->failure);
    case JobState::completed:
      break;
    default:
      return failed(FailureClass::disagreement,
                    with_reason("the scheduler cannot say how the job ended (" + state + ")", job));
  }
  if (!sentinel) {
    return failed(FailureClass::disagreement,
                  "the scheduler says completed, but the job left no result");
  }
  if (!sentinel->failure.empty()) {
    return failed(FailureClass::disagreement,
                  "the scheduler says completed, the job's own result says: " + sentinel->failure);
  }
  if (sentinel->nonce != nonce || sentinel->bundle != bundle) {
    return failed(FailureClass::disagreement, "the result in the folder is of another attempt");
  }
  if (sentinel->nodes != job.nodes) {
    return failed(FailureClass::disagreement, "the scheduler says that it ran on " +
                                                  list(job.nodes) + ", the nodes say " +
                                                  list(sentinel->nodes));
  }
  if (job.restart_count > 0 || sentinel->restart_count > 0) {
    return failed(FailureClass::disagreement, "the scheduler restarted the job");
  }
  return {true, {}, FailureClass::none};
}

}  // namespace qualify::run
