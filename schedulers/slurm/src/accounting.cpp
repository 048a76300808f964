#include "accounting.hpp"

#include <slurm/slurmdb.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "child.hpp"
#include "convert.hpp"
#include "version.hpp"

namespace qualify::scheduler::slurm {

namespace {

/// A slurmdbd that is there answers in milliseconds; one whose host swallows packets never does.
constexpr std::chrono::seconds kPatience{15};

std::string text(const char* value) {
  return value == nullptr ? "" : value;
}

auto* list_of(const std::string& value) {
  auto* list = slurm_list_create(nullptr);
  slurm_list_append(list, const_cast<char*>(value.c_str()));
  return list;
}

/// The name of a reservation's number. A job's own record lacks it where the job started in the
/// same second as the reservation.
std::string reservation_name(void* connection, const std::string& cluster, std::uint32_t number,
                             time_t since) {
  if (number == 0) return "";
  const std::string id = std::to_string(number);
  slurmdb_reservation_cond_t wanted{};
  wanted.cluster_list = list_of(cluster);
  wanted.id_list = list_of(id);
  wanted.time_start = since;
  auto* records = slurmdb_reservations_get(connection, &wanted);
  if (records == nullptr) return "";
  auto* each = slurm_list_iterator_create(records);
  while (const auto* record = static_cast<slurmdb_reservation_rec_t*>(slurm_list_next(each))) {
    if (record->id == number) return text(record->name);
  }
  return "";
}

Json to_json(const slurmdb_job_rec_t& record) {
  return {{"id", record.jobid},
          {"name", text(record.jobname)},
          {"state", record.state},
          {"exit", record.exitcode},
          {"nodes", text(record.nodes)},
          {"reservation", text(record.resv_name)},
          {"partition", text(record.partition)},
          {"user", text(record.user)},
          {"submit", record.submit},
          {"start", record.start},
          {"end", record.end},
          {"limit", record.timelimit},
          {"restarts", restart_count(record)}};
}

/// In the child, whose memory nobody frees. {"jobs": […]} or {"error": …}.
std::string ask(const std::string& cluster, const std::string& name, time_t since) {
  slurmdb_job_cond_t wanted{};
  const std::string user = std::to_string(getuid());
  wanted.cluster_list = list_of(cluster);
  wanted.jobname_list = list_of(name);
  wanted.userid_list = list_of(user);
  wanted.usage_start = since;
  wanted.db_flags = SLURMDB_JOB_FLAG_NOTSET;
  // All of a number that was used again; times as they are, not cut at `since`.
  wanted.flags = JOBCOND_FLAG_DUP | JOBCOND_FLAG_NO_STEP | JOBCOND_FLAG_NO_TRUNC;
  std::uint16_t flags = 0;
  errno = 0;
  void* connection = slurmdb_connection_get(&flags);
  if (connection == nullptr || errno != 0) return Json{{"error", slurm_strerror(errno)}}.dump();
  auto* records = slurmdb_jobs_get(connection, &wanted);
  if (records == nullptr) return Json{{"error", slurm_strerror(errno)}}.dump();
  Json jobs = Json::array();
  auto* each = slurm_list_iterator_create(records);
  while (const auto* record = static_cast<slurmdb_job_rec_t*>(slurm_list_next(each))) {
    jobs.push_back(to_json(*record));
    if (text(record->resv_name).empty()) {
      jobs.back()["reservation"] = reservation_name(connection, cluster, record->resvid, since);
    }
  }
  slurmdb_connection_close(&connection);
  // Bytes that are not UTF-8 must not end the child.
  return Json{{"jobs", std::move(jobs)}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Job to_job(const Json& record, const std::string& nonce) {
  Job job;
  job.accounted = true;
  job.nonce = nonce;
  job.id = std::to_string(record.at("id").get<std::uint32_t>());
  job.name = record.at("name").get<std::string>();
  job.state = job_state(record.at("state").get<std::uint32_t>());
  set_exit(job, record.at("exit").get<std::uint32_t>());
  job.reservation = record.at("reservation").get<std::string>();
  job.partition = record.at("partition").get<std::string>();
  job.user = record.at("user").get<std::string>();
  // "None assigned" stands for no nodes.
  const auto nodes = record.at("nodes").get<std::string>();
  if (nodes.find(' ') == std::string::npos) job.nodes = expand(nodes.c_str());
  const auto time = [&](const char* key) -> std::optional<Time> {
    const auto seconds = record.at(key).get<time_t>();
    if (seconds <= 0) return std::nullopt;
    return Time(std::chrono::seconds(seconds));
  };
  job.submit_time = time("submit");
  job.start_time = time("start");
  job.end_time = time("end");
  // How it ended comes with its end, in a message of its own that may be late.
  if (is_terminal(job.state) && !job.end_time) {
    job.ended_as = std::exchange(job.state, JobState::completing);
  }
  job.restart_count = record.at("restarts").get<std::uint32_t>();
  const auto minutes = record.at("limit").get<std::uint32_t>();
  if (minutes != 0 && minutes != INFINITE && minutes != NO_VAL) {
    job.time_limit = std::chrono::minutes(minutes);
  }
  return job;
}

}  // namespace

Result<std::vector<Job>> accounted_jobs(const std::string& cluster, const std::string& name,
                                        const std::string& nonce, Time since) {
  const auto seconds = std::max<time_t>(
      1, std::chrono::duration_cast<std::chrono::seconds>(since.time_since_epoch()).count());
  const auto asked = in_child([&] { return ask(cluster, name, seconds); }, kPatience);
  if (!asked) return tl::unexpected(asked.error());
  const auto silent = [&](const std::string& why) {
    return fail(Errc::unavailable, "accounting does not answer: " + why, "slurmdbd",
                "see 'sacctmgr ping'");
  };
  if (!asked->well) {
    return silent(asked->printed.empty() ? "not within 15 s" : asked->printed);
  }
  const auto answer = parse_json(asked->result, "accounting");
  if (!answer) return silent("an answer that cannot be read");
  if (answer->contains("error")) return silent(answer->at("error").get<std::string>());
  // One job by its number: each time that it was started again has a record of its own.
  std::map<std::string, Job> jobs;
  for (const Json& record : answer->at("jobs")) {
    Job job = to_job(record, nonce);
    if (job.name != name) continue;  // the database's equality does not know upper from lower case
    const auto known = jobs.find(job.id);
    if (known == jobs.end()) {
      jobs.emplace(job.id, std::move(job));
      continue;
    }
    const std::uint32_t restarts = std::max(known->second.restart_count + 1, job.restart_count);
    if (job.submit_time >= known->second.submit_time) known->second = std::move(job);
    known->second.restart_count = restarts;
  }
  std::vector<Job> list;
  for (auto& [id, job] : jobs) list.push_back(std::move(job));
  return list;
}

}  // namespace qualify::scheduler::slurm
