#pragma once

#include <string>
#include <vector>

#include "qualify/scheduler/types.hpp"
#include "version.hpp"

/// Slurm's records as plain values. Pure, but for the names of users, which the system knows.
namespace qualify::scheduler::slurm {

/// "gpu[0001-0003,0007]" -> sorted single names.
[[nodiscard]] std::vector<std::string> expand(const char* hostlist);

[[nodiscard]] Reservation to_reservation(const reserve_info_t& record);
[[nodiscard]] Node to_node(const node_info_t& record);
[[nodiscard]] Job to_job(const slurm_job_info_t& record);

/// A job's state as the controller and accounting number it.
[[nodiscard]] JobState job_state(std::uint32_t state);
/// Exit code or signal from the status word of waitpid, which both keep.
void set_exit(Job& job, std::uint32_t wait_status);

/// GPUs in a node's GRES: "gpu:h200:8(S:0-1),shard:64" is 8.
[[nodiscard]] std::uint32_t count_gpus(const char* gres);

/// Comment of a job of ours, and back; empty for any other comment.
[[nodiscard]] std::string comment_for(const std::string& nonce);
[[nodiscard]] std::string nonce_of(const std::string& job_name, const char* comment);

/// What libslurm's error number means for somebody who asked for something: refused, or unavailable
/// when the controller's answer is not known. `what`: "cannot submit".
[[nodiscard]] Unexpected failure(int error_number, const std::string& what);

}  // namespace qualify::scheduler::slurm
