#pragma once

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include <cstdint>
#include <string>

#include "qualify/base/error.hpp"

/// What differs between Slurm releases, 22.05 to 26.05, and nothing else. No other file looks at
/// SLURM_VERSION_NUMBER or at a name that some release lacks.
namespace qualify::scheduler::slurm {

/// hostlist_t is a pointer before 23.11 and a struct since.
using Hostlist = decltype(slurm_hostlist_create(nullptr));

/// The job's number: `job_id` for long, a part of `step_id` where a release has only that.
template <class Record>
std::uint32_t job_number(const Record& record) {
  if constexpr (requires { record.job_id; }) {
    return record.job_id;
  } else {
    return record.step_id.job_id;
  }
}

/// How often a job was started again, by its record in accounting, which has it since 24.11; 0
/// before.
template <class Record>
std::uint32_t restart_count(const Record& record) {
  if constexpr (requires { record.restart_cnt; }) {
    return record.restart_cnt;
  } else {
    return 0;
  }
}

/// Comma lists that a reservation has since 25.11; null before.
[[nodiscard]] const char* allowed_partitions(const reserve_info_t& record);
[[nodiscard]] const char* qos(const reserve_info_t& record);

/// "gres:gpu:8" until 23.02, "gres/gpu:8" since.
[[nodiscard]] std::string gpus_per_node(std::uint32_t count);

/// Bits of reserve_info_t.flags by Slurm's own names, of all releases; bit 0 ends the list.
struct ReservationFlag {
  std::uint64_t bit;
  const char* name;  ///< null: it says nothing of what the reservation is
};
extern const ReservationFlag kReservationFlags[];

/// Reads the configuration, once a process. Must not be called before configuration_is_there():
/// libslurm ends the process when there is none.
void initialise();

/// "22.05.8": of the headers.
[[nodiscard]] std::string built_for();

/// Errors: unsupported when the library that was loaded is of another release than the headers.
[[nodiscard]] Result<void> check_library();

/// For the answer of slurm_job_will_run2(). Its documentation names the function that frees it; no
/// header of 22.05 declares that.
void free_answer(will_run_response_msg_t* answer);

/// Of slurm_load_ctl_conf().
void free_configuration(slurm_conf_t* configuration);

[[nodiscard]] int kill_job(std::uint32_t job, std::uint16_t signal);

}  // namespace qualify::scheduler::slurm
