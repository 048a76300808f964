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
      if (!sentinel) {
        return failed(FailureClass::workload,
                      with_reason("the job failed and left no result", job));
      }
      if (sentinel->failure.empty()) {
        return failed(FailureClass::disagreement,
                      "the scheduler says failed, the job's own result says success");
      }
      return failed(FailureClass::workload, sentinel->failure);
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
  if (job.restart_count > 0 || sentinel->restart_count > 0) {
    return failed(FailureClass::disagreement, "the scheduler restarted the job");
  }
  return {true, {}, FailureClass::none};
}

}  // namespace qualify::run
