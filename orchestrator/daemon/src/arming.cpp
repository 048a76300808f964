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
  } else if (armed.due != time_in(payload, "occurrence")) {
    return;  // of an arming before this one
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
    armed.file = payload.value("file", std::string());
    if (armed.file.empty()) {
      armed.bundle = Digest::parse(payload.at("bundle").get<std::string>()).value();
      armed.reservation = payload.at("reservation").get<std::string>();
    }
    armed.by = payload.at("by").get<std::string>();
    armed.since = armed.handled = armed.ended = entry.time;
    armed.armed_at = armed.begun_at = entry.sequence;
    if (payload.contains("schedule")) {
      armed.schedule = payload.at("schedule").at("when").get<std::string>();
      armed.time_zone = payload.at("schedule").at("time_zone").get<std::string>();
    }
    // Where a damaged journal lost the disarming in between, the later word counts.
    std::erase_if(all, [&](const Armed& one) { return one.gate.name == armed.gate.name; });
    all.push_back(std::move(armed));
    return;
  }
  const bool of_schedule =
      entry.kind == event::kDue || entry.kind == event::kDone || entry.kind == event::kMissed;
  if (entry.kind != event::kDisarmed && entry.kind != event::kWaiting && !of_schedule) return;
  const auto found = find_gate(all, payload.at("gate").get<std::string>());
  // Late: it was disarmed just before, and earlier daemons recorded all the same.
  if (found == all.end()) return;
  if (entry.kind == event::kDisarmed) {
    all.erase(found);
  } else if (of_schedule) {
    apply_occurrence(entry, payload, *found);
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
    Json payload = {{"gate", armed.gate.name}, {"criteria", to_json(armed.gate)}, {"by", armed.by}};
    if (armed.file.empty()) {
      payload["bundle"] = armed.bundle.str();
      payload["reservation"] = armed.reservation;
    } else {
      payload["file"] = armed.file;
    }
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

namespace {

/// One event of this very arming; false, and nothing recorded, when it is there no more.
Result<bool> note(journal::Database& database, Time now, const Armed& armed, const char* kind,
                  Json payload) {
  bool noted = false;
  payload["gate"] = armed.gate.name;
  const auto done = database.transaction([&]() -> Result<void> {
    auto all = armed_gates(database);
    if (!all) return tl::unexpected(all.error());
    const auto found = find_gate(*all, armed.gate.name);
    if (found == all->end() || found->armed_at != armed.armed_at) return {};
    const auto appended = journal::Journal(database).append(now, {}, {}, 0, kind, payload);
    if (!appended) return tl::unexpected(appended.error());
    noted = true;
    return {};
  });
  if (!done) return tl::unexpected(done.error());
  return noted;
}

}  // namespace

Result<bool> note_disarmed(journal::Database& database, Time now, const Armed& armed,
                           const std::string& by, const std::string& why) {
  return note(database, now, armed, event::kDisarmed, {{"by", by}, {"why", why}});
}

Result<bool> note_waiting(journal::Database& database, Time now, const Armed& armed,
                          const std::vector<std::string>& faults) {
  return note(database, now, armed, event::kWaiting, {{"faults", faults}});
}

Result<bool> note_due(journal::Database& database, Time now, const Armed& armed, Time occurrence) {
  return note(database, now, armed, event::kDue, {{"occurrence", format_time(occurrence)}});
}

Result<bool> note_done(journal::Database& database, Time now, const Armed& armed, Time occurrence,
                       const std::string& outcome) {
  return note(database, now, armed, event::kDone,
              {{"occurrence", format_time(occurrence)}, {"outcome", outcome}});
}

Result<bool> note_missed(journal::Database& database, Time now, const Armed& armed,
                         const Missed& missed) {
  return note(database, now, armed, event::kMissed,
              {{"first", format_time(missed.first)},
               {"last", format_time(missed.last)},
               {"count", missed.count},
               {"why", missed.why}});
}

}  // namespace qualify::daemon
