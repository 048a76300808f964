#include "version.hpp"

#include <fmt/format.h>

// Weak: a library that does not export it costs a few bytes an answer, not the module.
extern "C" __attribute__((weak)) void slurm_free_will_run_response_msg(
    will_run_response_msg_t* answer);

namespace qualify::scheduler::slurm {

void free_answer(will_run_response_msg_t* answer) {
  if (&slurm_free_will_run_response_msg != nullptr) slurm_free_will_run_response_msg(answer);
}

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
const char* allowed_partitions(const reserve_info_t& record) {
  return record.allowed_parts;
}
const char* qos(const reserve_info_t& record) {
  return record.qos;
}
#else
const char* allowed_partitions(const reserve_info_t&) {
  return nullptr;
}
const char* qos(const reserve_info_t&) {
  return nullptr;
}
#endif

std::string gpus_per_node(std::uint32_t count) {
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
  return fmt::format("gres/gpu:{}", count);
#else
  return fmt::format("gres:gpu:{}", count);
#endif
}

namespace {

constexpr std::uint64_t bit(int number) {
  return std::uint64_t{1} << number;
}

}  // namespace

// By number, not by macro: a controller that is newer than this libslurm sends bits that its header
// has no name for. A number has had one meaning in all releases from 22.05 to 26.05; the static
// assertions compare with the header that is built against. NO_… bits only ask for a change.
const ReservationFlag kReservationFlags[] = {
    {bit(0), "MAINT"},
    {bit(2), "DAILY"},
    {bit(4), "WEEKLY"},
    {bit(6), "IGNORE_JOBS"},
    {bit(8), "ANY_NODES"},
    {bit(10), "STATIC"},
    {bit(12), "PART_NODES"},
    {bit(14), "OVERLAP"},
    {bit(15), "SPEC_NODES"},
    {bit(16), "FIRST_CORES"},  // until 23.02
    {bit(17), "TIME_FLOAT"},
    {bit(18), "REPLACE"},
    {bit(19), "ALL_NODES"},
    {bit(20), "PURGE_COMP"},
    {bit(21), "WEEKDAY"},
    {bit(23), "WEEKEND"},
    {bit(25), "FLEX"},
    {bit(29), "NO_HOLD_JOBS_AFTER_END"},
    {bit(30), "REPLACE_DOWN"},
    {bit(32), "MAGNETIC"},
    {bit(34), "SKIP"},
    {bit(35), "HOURLY"},
    {bit(37), "GRES_REQ"},  // since 23.11: it was asked for by GPUs, and may hold parts of nodes
    {bit(38), "TRES_PER_NODE"},  // since 23.11: how those were counted when it was asked for
    {bit(39), "USER_DELETE"},    // since 24.05
    // Since 24.11: of the scheduler's last pass, set and cleared all the time. No part of what the
    // reservation is.
    {bit(41), nullptr},
    {bit(42), "FORCE_START"},  // since 25.05
    {0, nullptr}};

static_assert(RESERVE_FLAG_MAINT == bit(0) && RESERVE_FLAG_DAILY == bit(2) &&
              RESERVE_FLAG_WEEKLY == bit(4) && RESERVE_FLAG_IGN_JOBS == bit(6) &&
              RESERVE_FLAG_ANY_NODES == bit(8) && RESERVE_FLAG_STATIC == bit(10) &&
              RESERVE_FLAG_PART_NODES == bit(12) && RESERVE_FLAG_OVERLAP == bit(14) &&
              RESERVE_FLAG_SPEC_NODES == bit(15) && RESERVE_FLAG_TIME_FLOAT == bit(17) &&
              RESERVE_FLAG_REPLACE == bit(18) && RESERVE_FLAG_ALL_NODES == bit(19) &&
              RESERVE_FLAG_PURGE_COMP == bit(20) && RESERVE_FLAG_WEEKDAY == bit(21) &&
              RESERVE_FLAG_WEEKEND == bit(23) && RESERVE_FLAG_FLEX == bit(25) &&
              RESERVE_FLAG_NO_HOLD_JOBS == bit(29) && RESERVE_FLAG_REPLACE_DOWN == bit(30) &&
              RESERVE_FLAG_MAGNETIC == bit(32) && RESERVE_FLAG_SKIP == bit(34) &&
              RESERVE_FLAG_HOURLY == bit(35));
#ifdef RESERVE_FLAG_FIRST_CORES
static_assert(RESERVE_FLAG_FIRST_CORES == bit(16));
#endif
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
static_assert(RESERVE_FLAG_GRES_REQ == bit(37) && RESERVE_TRES_PER_NODE == bit(38));
#endif
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
static_assert(RESERVE_FLAG_USER_DEL == bit(39));
#endif
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
static_assert(RESERVE_FLAG_SCHED_FAILED == bit(41));
#endif
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
static_assert(RESERVE_FLAG_FORCE_START == bit(42));
#endif

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
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
  slurm_step_id_t whole = SLURM_STEP_ID_INITIALIZER;
  whole.job_id = job;
  return slurm_kill_job(whole, signal, 0);
#else
  return slurm_kill_job(job, signal, 0);
#endif
}

void free_configuration(slurm_conf_t* configuration) {
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
  slurm_free_conf(configuration);
#else
  slurm_free_ctl_conf(configuration);
#endif
}

}  // namespace qualify::scheduler::slurm
