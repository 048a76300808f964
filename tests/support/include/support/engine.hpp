#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "qualify/base/digest.hpp"
#include "qualify/policy/gate.hpp"
#include "qualify/run/job_plan.hpp"
#include "qualify/scheduler/fake.hpp"
#include "qualify/scheduler/grant.hpp"

/// What tests of the engine begin with: a state with one sealed bundle, a cluster of one node with
/// one reservation, a gate of two runs, and jobs that leave what real ones leave.
namespace qualify::test {

/// Makes `folder`/state, seals a bundle whose output is metrics.jsonl, and returns its digest.
/// Arms: det and fast; again and wrong, which start from a checkpoint. Throws on failure: without
/// it no test can go on.
Digest make_state(const std::filesystem::path& folder);

/// Repeatability of arm det in "lm loss", each run at most five minutes.
[[nodiscard]] policy::Gate repeat_gate(const std::string& name = "repeat");

/// "night", node n1, from start to end.
[[nodiscard]] scheduler::Reservation night(Time start, Time end);
/// A cluster with that reservation, its node usable, and jobs that succeed.
[[nodiscard]] scheduler::FakeScript cluster_of(const scheduler::Reservation& reservation);
[[nodiscard]] scheduler::Grant grant_of(const scheduler::Reservation& reservation,
                                        const std::string& gate = "repeat");

/// One line of metrics: iteration 1, "lm loss" as the bits 0x412930XX (so that equality is exact),
/// and the time, which tells runs apart.
[[nodiscard]] std::string metrics_line(Time time, const std::string& last_byte = "69");

/// Of the run that a job is of, and of those that share it, in order.
[[nodiscard]] std::vector<run::JobPlan> plans_of(const scheduler::JobRequest& request);
/// What one attempt writes: `metrics`, and a result that agrees with the scheduler's word, unless
/// an earlier life of the cluster left them already. Throws when it cannot.
void write_result(const run::JobPlan& plan, const scheduler::Job& job, Time now,
                  const std::string& metrics, const std::string& failure = {});
/// The same for all attempts of a job that has ended by itself.
void leave_result(const scheduler::JobRequest& request, const scheduler::Job& job, Time now,
                  const std::string& metrics);

}  // namespace qualify::test
