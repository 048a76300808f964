#include "qualify/scheduler/grant.hpp"

#include <nlohmann/json.hpp>

namespace qualify::scheduler {

Json to_json(const Grant& grant) {
  return {{"gate", grant.gate},
          {"scheduler", grant.scheduler},
          {"reservation", to_json(grant.reservation)},
          {"operator", grant.operator_name},
          {"granted_at", format_time(grant.granted_at)}};
}

Result<Grant> grant_from_json(const Json& json) {
  try {
    Grant grant;
    grant.gate = json.at("gate").get<std::string>();
    grant.scheduler = json.at("scheduler").get<std::string>();
    auto reservation = reservation_from_json(json.at("reservation"));
    if (!reservation) return tl::unexpected(reservation.error());
    grant.reservation = std::move(*reservation);
    grant.operator_name = json.at("operator").get<std::string>();
    grant.granted_at = parse_time(json.at("granted_at").get<std::string>()).value();
    return grant;
  } catch (const std::exception& error) {
    return fail(Errc::invalid_input, std::string("not a grant: ") + error.what());
  }
}

}  // namespace qualify::scheduler
