#include "qualify/daemon/arming.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace qualify::daemon {

namespace {

auto find_gate(std::vector<Armed>& all, const std::string& gate) {
  return std::find_if(all.begin(), all.end(),
                      [&](const Armed& one) { return one.gate.name == gate; });
}

Time time_in(const Json& payload, const char* name) {
  return parse_time(payload.at(name).get<std::string>()).value();
}

void apply_occurrence(const journal::Event& entry, const Json& payload, Armed& armed) {
  if (entry.kind == event::kDue) {
    armed.due = armed.handled = time_in(payload, "occurrence");
    armed.begun_at = entry.sequence;
    armed.waiting_for.clear();
    return;
  }
  if (entry.kind == event::kMissed) {
    armed.missed =
        Missed{time_in(payload, "first"), time_in(payload, "last"),
               payload.at("count").get<std::int64_t>(), payload.at("why").get<std::string>()};
    armed.handled = std::max(armed.handled, armed.missed->last);
    if (!armed.due || *armed.due > armed.missed->last || *armed.due < armed.missed->first) return;
  }
  armed.due.reset();
  armed.ended = entry.time;
  armed.waiting_for.clear();
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
    armed.since = armed.handled = armed.ended = entry.time;
    armed.begun_at = entry.sequence;
    if (payload.contains("schedule")) {
      armed.schedule = payload.at("schedule").at("when").get<std::string>();
      armed.time_zone = payload.at("schedule").at("time_zone").get<std::string>();
    }
    all.push_back(std::move(armed));
    return;
  }
  const bool of_schedule =
      entry.kind == event::kDue || entry.kind == event::kDone || entry.kind == event::kMissed;
  if (entry.kind != event::kDisarmed && entry.kind != event::kWaiting && !of_schedule) return;
  const auto found = find_gate(all, payload.at("gate").get<std::string>());
  if (found == all.end()) throw std::invalid_argument("a gate that is not armed");
  if (entry.kind == event::kDisarmed) {
    all.erase(found);
  } else if (of_schedule) {
    apply_occurrence(entry, payload, *found);
  } else {
    found->waiting_for = payload.at("faults").get<std::vector<std::string>>();
  }
}

Result<void> append(journal::Database& database, Time now, const char* kind, const Json& payload) {
  const auto noted = journal::Journal(database).append(now, {}, {}, 0, kind, payload);
  if (!noted) return tl::unexpected(noted.error());
  return {};
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
    Json payload = {{"gate", armed.gate.name},
                    {"criteria", to_json(armed.gate)},
                    {"bundle", armed.bundle.str()},
                    {"reservation", armed.reservation},
                    {"by", armed.by}};
    if (armed.recurrent()) {
      payload["schedule"] = {{"when", armed.schedule}, {"time_zone", armed.time_zone}};
    }
    const auto noted =
        journal::Journal(database).append(armed.since, {}, {}, 0, event::kArmed, payload);
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
  return append(database, now, event::kWaiting, {{"gate", gate}, {"faults", faults}});
}

Result<void> note_due(journal::Database& database, Time now, const std::string& gate,
                      Time occurrence) {
  return append(database, now, event::kDue,
                {{"gate", gate}, {"occurrence", format_time(occurrence)}});
}

Result<void> note_done(journal::Database& database, Time now, const std::string& gate,
                       Time occurrence, const std::string& outcome) {
  return append(database, now, event::kDone,
                {{"gate", gate}, {"occurrence", format_time(occurrence)}, {"outcome", outcome}});
}

Result<void> note_missed(journal::Database& database, Time now, const std::string& gate,
                         const Missed& missed) {
  return append(database, now, event::kMissed,
                {{"gate", gate},
                 {"first", format_time(missed.first)},
                 {"last", format_time(missed.last)},
                 {"count", missed.count},
                 {"why", missed.why}});
}

}  // namespace qualify::daemon
