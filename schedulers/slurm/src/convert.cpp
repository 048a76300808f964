#include "convert.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>

#include "qualify/base/text.hpp"

namespace qualify::scheduler::slurm {

namespace {

constexpr std::string_view kCommentPrefix = "qualify nonce=";

/// Whoever may submit a job may put any bytes into its name; what goes into records is UTF-8.
std::string text(const char* value) {
  return value == nullptr ? std::string() : to_utf8(value);
}

Time time_of(time_t seconds) {
  return Time(std::chrono::seconds(seconds));
}

std::optional<Time> time_if(time_t seconds) {
  if (seconds <= 0) return std::nullopt;
  return time_of(seconds);
}

std::vector<std::string> sorted_list(const char* value) {
  std::vector<std::string> items;
  const std::string all = text(value);
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find(',', begin), all.size());
    if (end > begin) items.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  std::sort(items.begin(), items.end());
  return items;
}

std::vector<std::string> flag_names(const reserve_info_t& record) {
  std::vector<std::string> names;
  std::uint64_t left = record.flags;
  for (const ReservationFlag* flag = kReservationFlags; flag->bit != 0; ++flag) {
    if ((left & flag->bit) == 0) continue;
    if (flag->name != nullptr) names.emplace_back(flag->name);
    left &= ~flag->bit;
  }
  // A bit without a name is still part of what the reservation is.
  for (int bit = 0; bit < 64; ++bit) {
    if ((left >> bit & 1U) != 0) names.push_back(fmt::format("BIT_{}", bit));
  }
  // Slurm lists cores only where nodes are not held whole.
  if (record.core_spec_cnt > 0) names.emplace_back("PARTIAL_CORES");
  std::sort(names.begin(), names.end());
  return names;
}

struct NodeFlag {
  std::uint32_t bit;
  const char* name;
  bool unusable;
};
constexpr NodeFlag kNodeFlags[] = {
    {NODE_STATE_DRAIN, "DRAIN", true},
    {NODE_STATE_NO_RESPOND, "NOT_RESPONDING", true},
    {NODE_STATE_FAIL, "FAIL", true},
    {NODE_STATE_MAINT, "MAINTENANCE", true},
    {NODE_STATE_RES, "RESERVED", false},
    {NODE_STATE_COMPLETING, "COMPLETING", false},
    {NODE_STATE_PLANNED, "PLANNED", false},
    {NODE_STATE_POWERED_DOWN, "POWERED_DOWN", true},
    {NODE_STATE_POWERING_DOWN, "POWERING_DOWN", true},
    {NODE_STATE_POWERING_UP, "POWERING_UP", true},
    {NODE_STATE_POWER_DOWN, "POWER_DOWN", true},
    {NODE_STATE_REBOOT_REQUESTED, "REBOOT_REQUESTED", true},
    {NODE_STATE_REBOOT_ISSUED, "REBOOT_ISSUED", true},
    {NODE_STATE_INVALID_REG, "INVALID_REG", true},
};

const char* base_state(std::uint32_t state) {
  switch (state & NODE_STATE_BASE) {
    case NODE_STATE_DOWN:
      return "DOWN";
    case NODE_STATE_IDLE:
      return "IDLE";
    case NODE_STATE_ALLOCATED:
      return "ALLOCATED";
    case NODE_STATE_ERROR:
      return "ERROR";
    case NODE_STATE_MIXED:
      return "MIXED";
    case NODE_STATE_FUTURE:
      return "FUTURE";
    default:
      return "UNKNOWN";
  }
}

/// The reasons that a person meets, in squeue's words; Slurm's table of them is not public.
std::string reason_of(const slurm_job_info_t& record) {
  constexpr std::pair<int, const char*> kReasons[] = {{WAIT_NO_REASON, ""},
                                                      {WAIT_PRIORITY, "Priority"},
                                                      {WAIT_DEPENDENCY, "Dependency"},
                                                      {WAIT_RESOURCES, "Resources"},
                                                      {WAIT_PART_NODE_LIMIT, "PartitionNodeLimit"},
                                                      {WAIT_PART_TIME_LIMIT, "PartitionTimeLimit"},
                                                      {WAIT_PART_DOWN, "PartitionDown"},
                                                      {WAIT_PART_INACTIVE, "PartitionInactive"},
                                                      {WAIT_HELD, "JobHeldAdmin"},
                                                      {WAIT_HELD_USER, "JobHeldUser"},
                                                      {WAIT_TIME, "BeginTime"},
                                                      {WAIT_LICENSES, "Licenses"},
                                                      {WAIT_RESERVATION, "Reservation"},
                                                      {WAIT_NODE_NOT_AVAIL, "ReqNodeNotAvail"},
                                                      {WAIT_RESV_DELETED, "ReservationDeleted"},
                                                      {FAIL_DOWN_PARTITION, "PartitionDown"},
                                                      {FAIL_DOWN_NODE, "NodeDown"},
                                                      {FAIL_SYSTEM, "SystemFailure"},
                                                      {FAIL_LAUNCH, "JobLaunchFailure"},
                                                      {FAIL_EXIT_CODE, "NonZeroExitCode"},
                                                      {FAIL_TIMEOUT, "TimeLimit"},
                                                      {FAIL_ACCOUNT, "InvalidAccount"},
                                                      {FAIL_QOS, "InvalidQOS"},
                                                      {WAIT_QOS_THRES, "QOSUsageThreshold"}};
  std::string reason = fmt::format("reason {}", record.state_reason);
  for (const auto& [number, name] : kReasons) {
    if (number == record.state_reason) reason = name;
  }
  const std::string described = text(record.state_desc);
  if (described.empty()) return reason;
  return reason.empty() ? described : reason + ": " + described;
}

std::string user_name(const slurm_job_info_t& record) {
  if (record.user_name != nullptr && *record.user_name != '\0') return record.user_name;
  static std::map<std::uint32_t, std::string> known;
  const auto found = known.find(record.user_id);
  if (found != known.end()) return found->second;
  passwd entry{};
  passwd* result = nullptr;
  char buffer[4096];
  std::string name = fmt::format("uid {}", record.user_id);
  if (getpwuid_r(record.user_id, &entry, buffer, sizeof buffer, &result) == 0 &&
      result != nullptr) {
    name = entry.pw_name;
  }
  known.emplace(record.user_id, name);
  return name;
}

}  // namespace

std::vector<std::string> expand(const char* hostlist) {
  std::vector<std::string> names;
  if (hostlist == nullptr || *hostlist == '\0') return names;
  const Hostlist list = slurm_hostlist_create(hostlist);
  if (list == nullptr) return names;
  while (char* name = slurm_hostlist_shift(list)) {
    names.emplace_back(name);
    std::free(name);  // libslurm: "the caller is responsible for freeing", by free()
  }
  slurm_hostlist_destroy(list);
  std::sort(names.begin(), names.end());
  return names;
}

JobState job_state(std::uint32_t state) {
  const std::uint32_t base = state & JOB_STATE_BASE;
  // Ended, but epilogs still run on its nodes: nothing else may be put there yet.
  if (base > JOB_SUSPENDED && (state & JOB_COMPLETING) != 0) return JobState::completing;
  switch (base) {
    case JOB_PENDING:
      return JobState::pending;
    case JOB_RUNNING:
      return JobState::running;
    case JOB_SUSPENDED:
      return JobState::suspended;
    case JOB_COMPLETE:
      return JobState::completed;
    case JOB_CANCELLED:
      return JobState::cancelled;
    case JOB_FAILED:
      return JobState::failed;
    case JOB_TIMEOUT:
      return JobState::timeout;
    case JOB_NODE_FAIL:
      return JobState::node_fail;
    case JOB_PREEMPTED:
      return JobState::preempted;
    case JOB_BOOT_FAIL:
      return JobState::boot_fail;
    case JOB_DEADLINE:
      return JobState::deadline;
    case JOB_OOM:
      return JobState::out_of_memory;
    default:
      return JobState::unknown;
  }
}

void set_exit(Job& job, std::uint32_t wait_status) {
  const int status = static_cast<int>(wait_status);
  if (WIFSIGNALED(status)) {
    job.signal = WTERMSIG(status);
  } else {
    job.exit_code = WEXITSTATUS(status);
  }
}

Reservation to_reservation(const reserve_info_t& record) {
  Reservation reservation;
  reservation.name = text(record.name);
  reservation.start = time_of(record.start_time);
  reservation.end = time_of(record.end_time);
  reservation.flags = flag_names(record);
  reservation.nodes = expand(record.node_list);
  reservation.node_count = record.node_cnt;
  reservation.core_count = record.core_cnt;
  reservation.partition = text(record.partition);
  reservation.users = sorted_list(record.users);
  reservation.accounts = sorted_list(record.accounts);
  reservation.groups = sorted_list(record.groups);
  reservation.licenses = text(record.licenses);
  reservation.features = text(record.features);
  reservation.tres = text(record.tres_str);
  reservation.allowed_partitions = sorted_list(allowed_partitions(record));
  reservation.qos = sorted_list(qos(record));
  return reservation;
}

Node to_node(const node_info_t& record) {
  Node node;
  node.name = text(record.name);
  const std::uint32_t base = record.node_state & NODE_STATE_BASE;
  node.usable = base == NODE_STATE_IDLE || base == NODE_STATE_ALLOCATED || base == NODE_STATE_MIXED;
  node.state = base_state(record.node_state);
  for (const NodeFlag& flag : kNodeFlags) {
    if ((record.node_state & flag.bit) == 0) continue;
    node.state += std::string("+") + flag.name;
    if (flag.unusable) node.usable = false;
  }
  node.reason = text(record.reason);
  if (!node.reason.empty()) node.reason_time = time_if(record.reason_time);
  node.cpus = record.cpus;
  node.cores = std::uint32_t{record.boards} * record.sockets * record.cores;
  node.gpus = count_gpus(record.gres);
  return node;
}

Job to_job(const slurm_job_info_t& record) {
  Job job;
  job.id = std::to_string(job_number(record));
  job.name = text(record.name);
  // Anybody can write our words beside a job of their own. A site's job_submit plugin may have put
  // others into the comment: then the name has the nonce.
  if (record.user_id == getuid()) job.nonce = nonce_of(job.name, record.comment);
  job.state = job_state(record.job_state);
  if (job.state == JobState::completing) {
    job.ended_as = job_state(record.job_state & JOB_STATE_BASE);
  }
  job.reason = reason_of(record);
  job.held_by_reservation_end =
      (record.job_state & JOB_RESV_DEL_HOLD) != 0 || record.state_reason == WAIT_RESV_DELETED;
  job.reservation = text(record.resv_name);
  job.partition = text(record.partition);
  job.user = user_name(record);
  job.nodes = expand(record.nodes);
  job.restart_count = record.restart_cnt;
  set_exit(job, record.exit_code);
  job.submit_time = time_if(record.submit_time);
  const bool ended = is_terminal(job.state) || job.state == JobState::completing;
  // Of a pending job Slurm reports when it may start; of a running one, when it must end.
  if (job.state != JobState::pending) job.start_time = time_if(record.start_time);
  if (ended) job.end_time = time_if(record.end_time);
  if (record.time_limit != INFINITE && record.time_limit != NO_VAL) {
    job.time_limit = std::chrono::minutes(record.time_limit);
  }
  return job;
}

std::uint32_t count_gpus(const char* gres) {
  std::uint32_t total = 0;
  std::string all = text(gres);
  // Sockets stand in brackets, with commas of their own.
  for (std::size_t open = all.find('('); open != std::string::npos; open = all.find('(')) {
    const std::size_t close = all.find(')', open);
    all.erase(open, close == std::string::npos ? close : close - open + 1);
  }
  for (const std::string& item : sorted_list(all.c_str())) {
    if (item != "gpu" && !item.starts_with("gpu:")) continue;
    const std::string_view last = std::string_view(item).substr(item.rfind(':') + 1);
    std::uint32_t count = 0;
    const auto [end, error] = std::from_chars(last.data(), last.data() + last.size(), count);
    total += error == std::errc() && end == last.data() + last.size() ? count : 1;  // "gpu": one
  }
  return total;
}

std::string comment_for(const std::string& nonce) {
  return std::string(kCommentPrefix) + nonce;
}

std::string nonce_of(const std::string& job_name, const char* comment) {
  const std::string all = text(comment);
  if (all.starts_with(kCommentPrefix)) {
    return all.substr(kCommentPrefix.size(),
                      all.find(' ', kCommentPrefix.size()) - kCommentPrefix.size());
  }
  return job_name.starts_with("qualify:") ? job_name.substr(job_name.rfind(':') + 1) : "";
}

Unexpected failure(int error_number, const std::string& what) {
  const std::string reason =
      fmt::format("{}: {} ({})", what, slurm_strerror(error_number), error_number);
  // A backup that has not taken over, or a primary that has just given up, answers nothing.
  const bool standby =
      error_number == ESLURM_IN_STANDBY_MODE || error_number == ESLURM_IN_STANDBY_USE_BACKUP;
  // Only the controller itself says 2000 and above; what lies below is how the question or the
  // answer got lost, and then a job may exist.
  if (!standby && error_number >= ESLURM_INVALID_PARTITION_NAME && error_number < 3000) {
    return fail(Errc::refused, reason);
  }
  // A controller that cannot read who is asking closes the connection and says nothing.
  if (error_number == SLURM_PROTOCOL_SOCKET_ZERO_BYTES_SENT ||
      error_number == SLURM_PROTOCOL_AUTHENTICATION_ERROR) {
    return fail(
        Errc::unavailable, reason, "munge",
        "the controller does not take this machine's credential: munged must run here, with "
        "the controller's key and clock; try 'munge -n | ssh CONTROLLER unmunge'");
  }
  return fail(Errc::unavailable, reason, {}, "see 'scontrol ping'");
}

}  // namespace qualify::scheduler::slurm
