#pragma once

#include <filesystem>
#include <string>

#include "qualify/base/digest.hpp"
#include "qualify/policy/gate.hpp"
#include "qualify/scheduler/fake.hpp"
#include "qualify/scheduler/grant.hpp"

/// What tests of the engine begin with: a state with one sealed bundle, a cluster of one node with
/// one reservation, a gate of two runs, and jobs that leave what real ones leave.
namespace qualify::test {

/// Makes `folder`/state, seals a bundle of the arms det and fast whose output is metrics.jsonl, and
/// returns its digest. Throws on failure: without it no test can go on.
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

/// What the job of this request writes when it ends: `metrics`, and a result that agrees with the
/// scheduler's word, unless an earlier life of the cluster left them already.
/// Throws when it cannot.
void leave_result(const scheduler::JobRequest& request, const scheduler::Job& job, Time now,
                  const std::string& metrics);

}  // namespace qualify::test
