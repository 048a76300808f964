#include "version.hpp"

#include <fmt/format.h>

// Weak: a library that does not export it costs a few bytes an answer, not the module.
extern "C" __attribute__((weak)) void slurm_free_will_run_response_msg(
    will_run_response_msg_t* answer);

namespace qualify::scheduler::slurm {

void free_answer(will_run_response_msg_t* answer) {
  if (&slurm_free_will_run_response_msg != nullptr) slurm_free_will_run_response_msg(answer);
}

std::string gpus_per_node(std::uint32_t count) {
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
  return fmt::format("gres/gpu:{}", count);
#else
  return fmt::format("gres:gpu:{}", count);
#endif
}

const ReservationFlag kReservationFlags[] = {{RESERVE_FLAG_MAINT, "MAINT"},
                                             {RESERVE_FLAG_DAILY, "DAILY"},
                                             {RESERVE_FLAG_WEEKLY, "WEEKLY"},
                                             {RESERVE_FLAG_IGN_JOBS, "IGNORE_JOBS"},
                                             {RESERVE_FLAG_ANY_NODES, "ANY_NODES"},
                                             {RESERVE_FLAG_STATIC, "STATIC"},
                                             {RESERVE_FLAG_PART_NODES, "PART_NODES"},
                                             {RESERVE_FLAG_OVERLAP, "OVERLAP"},
                                             {RESERVE_FLAG_SPEC_NODES, "SPEC_NODES"},
#ifdef RESERVE_FLAG_FIRST_CORES  // gone in 25.05
                                             {RESERVE_FLAG_FIRST_CORES, "FIRST_CORES"},
#endif
                                             {RESERVE_FLAG_TIME_FLOAT, "TIME_FLOAT"},
                                             {RESERVE_FLAG_REPLACE, "REPLACE"},
                                             {RESERVE_FLAG_ALL_NODES, "ALL_NODES"},
                                             {RESERVE_FLAG_PURGE_COMP, "PURGE_COMP"},
                                             {RESERVE_FLAG_WEEKDAY, "WEEKDAY"},
                                             {RESERVE_FLAG_WEEKEND, "WEEKEND"},
                                             {RESERVE_FLAG_FLEX, "FLEX"},
                                             {RESERVE_FLAG_NO_HOLD_JOBS, "NO_HOLD_JOBS_AFTER_END"},
                                             {RESERVE_FLAG_REPLACE_DOWN, "REPLACE_DOWN"},
                                             {RESERVE_FLAG_MAGNETIC, "MAGNETIC"},
                                             {RESERVE_FLAG_SKIP, "SKIP"},
                                             {RESERVE_FLAG_HOURLY, "HOURLY"},
#ifdef RESERVE_FLAG_USER_DEL  // since 23.02
                                             {RESERVE_FLAG_USER_DEL, "USER_DELETE"},
#endif
#ifdef RESERVE_FLAG_FORCE_START  // since 24.05
                                             {RESERVE_FLAG_FORCE_START, "FORCE_START"},
#endif
                                             {0, nullptr}};

void initialise() {
  slurm_init(nullptr);
}

namespace {

std::string numbers(long version) {
  return fmt::format("{}.{}.{}", SLURM_VERSION_MAJOR(version), SLURM_VERSION_MINOR(version),
                     SLURM_VERSION_MICRO(version));
}

}  // namespace

std::string built_for() {
  // The header packs decimal digits into hexadecimal ones: 22.05.8 is 0x160508.
  return fmt::format("{}.{:02}.{}", SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER),
                     SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER),
                     SLURM_VERSION_MICRO(SLURM_VERSION_NUMBER));
}

Result<void> check_library() {
  const long loaded = slurm_api_version();
  // A change of the last part adds nothing that breaks; the others do.
  if (loaded >> 8 == QUALIFY_SLURM_API_VERSION >> 8) return {};
  return fail(
      Errc::unsupported,
      fmt::format("this module was built for libslurm {} (interface {}), the one loaded has "
                  "interface {}",
                  built_for(), numbers(QUALIFY_SLURM_API_VERSION), numbers(loaded)),
      "libslurm", "build the Slurm module of qualify against this cluster's slurm.h");
}

int kill_job(std::uint32_t job, std::uint16_t signal) {
  return slurm_kill_job(job, signal, 0);
}

}  // namespace qualify::scheduler::slurm
