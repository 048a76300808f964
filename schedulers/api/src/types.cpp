#include "qualify/scheduler/types.hpp"

#include <array>
#include <nlohmann/json.hpp>

namespace qualify::scheduler {

namespace {

constexpr std::array kStates = {"pending",   "running",  "suspended",     "completing", "completed",
                                "cancelled", "failed",   "timeout",       "node_fail",  "preempted",
                                "boot_fail", "deadline", "out_of_memory", "unknown"};

Json optional_time(const std::optional<Time>& time) {
  return time ? Json(format_time(*time)) : Json(nullptr);
}

}  // namespace

Json to_json(const Reservation& reservation) {
  return {{"name", reservation.name},
          {"start", format_time(reservation.start)},
          {"end", format_time(reservation.end)},
          {"flags", reservation.flags},
          {"nodes", reservation.nodes},
          {"node_count", reservation.node_count},
          {"core_count", reservation.core_count},
          {"partition", reservation.partition},
          {"users", reservation.users},
          {"accounts", reservation.accounts},
          {"groups", reservation.groups},
          {"licenses", reservation.licenses},
          {"features", reservation.features},
          {"tres", reservation.tres},
          {"allowed_partitions", reservation.allowed_partitions},
          {"qos", reservation.qos}};
}

Result<Reservation> reservation_from_json(const Json& json) {
  using Texts = std::vector<std::string>;
  try {
    Reservation reservation;
    reservation.name = json.at("name").get<std::string>();
    reservation.start = parse_time(json.at("start").get<std::string>()).value();
    reservation.end = parse_time(json.at("end").get<std::string>()).value();
    reservation.flags = json.at("flags").get<Texts>();
    reservation.nodes = json.at("nodes").get<Texts>();
    reservation.node_count = json.at("node_count").get<std::uint32_t>();
    reservation.core_count = json.at("core_count").get<std::uint32_t>();
    reservation.partition = json.at("partition").get<std::string>();
    reservation.users = json.at("users").get<Texts>();
    reservation.accounts = json.at("accounts").get<Texts>();
    reservation.groups = json.at("groups").get<Texts>();
    reservation.licenses = json.at("licenses").get<std::string>();
    reservation.features = json.at("features").get<std::string>();
    reservation.tres = json.at("tres").get<std::string>();
    reservation.allowed_partitions = json.value("allowed_partitions", Texts());
    reservation.qos = json.value("qos", Texts());
    return reservation;
  } catch (const std::exception& error) {
    return fail(Errc::invalid_input, std::string("not a reservation: ") + error.what());
  }
}

Digest fingerprint(const Reservation& reservation) {
  Json fields = to_json(reservation);
  for (const char* later : {"allowed_partitions", "qos"}) {
    if (fields.at(later).empty()) fields.erase(later);
  }
  return digest_of(fields);
}

const char* name_of(JobState state) {
  return kStates[static_cast<std::size_t>(state)];
}

bool is_terminal(JobState state) {
  switch (state) {
    case JobState::pending:
    case JobState::running:
    case JobState::suspended:
    case JobState::completing:
    case JobState::unknown:
      return false;
    case JobState::completed:
    case JobState::cancelled:
    case JobState::failed:
    case JobState::timeout:
    case JobState::node_fail:
    case JobState::preempted:
    case JobState::boot_fail:
    case JobState::deadline:
    case JobState::out_of_memory:
      return true;
  }
  return false;
}

Json to_json(const Job& job) {
  return {
      {"id", job.id},
      {"name", job.name},
      {"nonce", job.nonce},
      {"state", name_of(job.state)},
      {"reason", job.reason},
      {"held_by_reservation_end", job.held_by_reservation_end},
      {"reservation", job.reservation},
      {"partition", job.partition},
      {"user", job.user},
      {"nodes", job.nodes},
      {"restart_count", job.restart_count},
      {"exit_code", job.exit_code},
      {"signal", job.signal},
      {"submit_time", optional_time(job.submit_time)},
      {"start_time", optional_time(job.start_time)},
      {"end_time", optional_time(job.end_time)},
      {"time_limit_seconds",
       job.time_limit
           ? Json(std::chrono::duration_cast<std::chrono::seconds>(*job.time_limit).count())
           : Json(nullptr)},
      {"ended_as", job.state == JobState::completing ? Json(name_of(job.ended_as)) : Json(nullptr)},
      {"accounted", job.accounted}};
}

}  // namespace qualify::scheduler
