#include "qualify/daemon/arming.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace qualify::daemon {

namespace {

auto find_gate(std::vector<Armed>& all, const std::string& gate) {
  return std::find_if(all.begin(), all.end(),
                      [&](const Armed& one) { return one.gate.name == gate; });
}

/// Throws on what no daemon writes.
void apply(const journal::Event& entry, std::vector<Armed>& all) {
  const Json payload = parse_json(entry.payload, "journal event").value();
  if (entry.kind == event::kArmed) {
    Armed armed;
    armed.gate = policy::gate_from_json(payload.at("criteria")).value();
    armed.bundle = Digest::parse(payload.at("bundle").get<std::string>()).value();
    armed.reservation = payload.at("reservation").get<std::string>();
    armed.by = payload.at("by").get<std::string>();
    armed.since = entry.time;
    all.push_back(std::move(armed));
    return;
  }
  if (entry.kind != event::kDisarmed && entry.kind != event::kWaiting) return;
  const auto found = find_gate(all, payload.at("gate").get<std::string>());
  if (found == all.end()) throw std::invalid_argument("a gate that is not armed");
  if (entry.kind == event::kDisarmed) {
    all.erase(found);
  } else {
    found->waiting_for = payload.at("faults").get<std::vector<std::string>>();
  }
}

}  // namespace

Result<std::vector<Armed>> armed_gates(journal::Database& database) {
  const auto events = journal::Journal(database).general_events();
  if (!events) return tl::unexpected(events.error());
  std::vector<Armed> all;
  try {
    for (const journal::Event& entry : *events) apply(entry, all);
  } catch (const std::exception& error) {
    return fail(Errc::integrity,
                std::string("the journal does not make sense: arming: ") + error.what(), {},
                "see what is wrong with: qualify doctor");
  }
  return all;
}

Result<void> arm(journal::Database& database, const Armed& armed) {
  return database.transaction([&]() -> Result<void> {
    auto all = armed_gates(database);
    if (!all) return tl::unexpected(all.error());
    if (find_gate(*all, armed.gate.name) != all->end()) {
      return fail(Errc::already_exists, "gate '" + armed.gate.name + "' is armed already", {},
                  "qualify disarm " + armed.gate.name);
    }
    const auto noted = journal::Journal(database).append(armed.since, {}, {}, 0, event::kArmed,
                                                         {{"gate", armed.gate.name},
                                                          {"criteria", to_json(armed.gate)},
                                                          {"bundle", armed.bundle.str()},
                                                          {"reservation", armed.reservation},
                                                          {"by", armed.by}});
    if (!noted) return tl::unexpected(noted.error());
    return {};
  });
}

Result<void> disarm(journal::Database& database, Time now, const std::string& gate,
                    const std::string& by, const std::string& why) {
  return database.transaction([&]() -> Result<void> {
    auto all = armed_gates(database);
    if (!all) return tl::unexpected(all.error());
    if (find_gate(*all, gate) == all->end()) {
      return fail(Errc::not_found, "gate '" + gate + "' is not armed");
    }
    const auto noted = journal::Journal(database).append(
        now, {}, {}, 0, event::kDisarmed, {{"gate", gate}, {"by", by}, {"why", why}});
    if (!noted) return tl::unexpected(noted.error());
    return {};
  });
}

Result<void> note_waiting(journal::Database& database, Time now, const std::string& gate,
                          const std::vector<std::string>& faults) {
  const auto noted = journal::Journal(database).append(now, {}, {}, 0, event::kWaiting,
                                                       {{"gate", gate}, {"faults", faults}});
  if (!noted) return tl::unexpected(noted.error());
  return {};
}

}  // namespace qualify::daemon
