#include "qualify/journal/journal.hpp"

#include <nlohmann/json.hpp>

namespace qualify::journal {

namespace {

constexpr const char* kPlanCreated = "plan.created";

Time time_from(std::int64_t microseconds) {
  return Time(Duration(microseconds));
}

Event event_from(const Statement& row) {
  Event event;
  event.sequence = row.number(0);
  event.time = time_from(row.number(1));
  event.qualification = row.text(2);
  event.run = row.text(3);
  event.attempt = static_cast<int>(row.number(4));
  event.kind = row.text(5);
  event.payload = row.text(6);
  return event;
}

}  // namespace

Result<Event> Journal::append(Time time, const std::string& qualification, const std::string& run,
                              int attempt, const std::string& kind, const Json& payload) {
  auto bytes = canonical_json(payload);
  if (!bytes) return tl::unexpected(bytes.error());
  std::int64_t sequence = 0;
  auto done = database_->transaction([&]() -> Result<void> {
    auto insert = database_->prepare(
        "INSERT INTO event (time, qualification, run, attempt, kind, payload) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING sequence");
    if (!insert) return tl::unexpected(insert.error());
    insert->bind(1, time.time_since_epoch().count()).bind(3, run).bind(4, attempt);
    insert->bind(5, kind).bind(6, *bytes);
    if (qualification.empty()) {
      insert->bind_null(2);
    } else {
      insert->bind(2, qualification);
    }
    auto row = insert->step();
    if (!row) return tl::unexpected(row.error());
    sequence = insert->number(0);
    if (auto end = insert->step(); !end) return tl::unexpected(end.error());
    return {};
  });
  if (!done) return tl::unexpected(done.error());
  return Event{sequence, time, qualification, run, attempt, kind, std::move(*bytes)};
}

namespace {

/// `which`: the WHERE clause, with one parameter at most.
Result<Statement> prepare_events(Database& database, const std::string& which) {
  return database.prepare(
      "SELECT sequence, time, qualification, run, attempt, kind, payload FROM event " + which +
      " ORDER BY sequence");
}

Result<std::vector<Event>> read_events(Statement& select) {
  std::vector<Event> events;
  for (;;) {
    auto row = select.step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return events;
    events.push_back(event_from(select));
  }
}

constexpr const char* kOfOne = "WHERE qualification = ?1";

Result<std::vector<Event>> select_events(Database& database, const std::string& which,
                                         const std::string& parameter = {}) {
  auto select = prepare_events(database, which);
  if (!select) return tl::unexpected(select.error());
  if (!parameter.empty()) select->bind(1, parameter);
  return read_events(*select);
}

Result<std::vector<std::string>> names_of(Statement& select) {
  std::vector<std::string> names;
  for (;;) {
    auto row = select.step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return names;
    names.push_back(select.text(0));
  }
}

}  // namespace

Result<std::vector<Event>> Journal::events(const std::string& qualification) const {
  if (qualification.empty()) return select_events(*database_, {});
  return select_events(*database_, kOfOne, qualification);
}

Result<std::vector<std::vector<Event>>> Journal::events_of_each(
    std::span<const std::string> qualifications) const {
  auto select = prepare_events(*database_, kOfOne);
  if (!select) return tl::unexpected(select.error());
  std::vector<std::vector<Event>> all;
  for (const std::string& qualification : qualifications) {
    select->reset();
    select->bind(1, qualification);
    auto events = read_events(*select);
    if (!events) return tl::unexpected(events.error());
    all.push_back(std::move(*events));
  }
  return all;
}

Result<std::vector<Event>> Journal::general_events() const {
  return select_events(*database_, "WHERE qualification IS NULL");
}

Result<std::vector<std::string>> Journal::qualifications(const std::string& gate) const {
  // One without events lost them: only its number is known (docs/decisions/0009-transcript.md).
  auto select =
      database_->prepare(std::string("SELECT name FROM qualification WHERE ") +
                         (gate.empty() ? "" : "gate = ?1 AND ") +
                         "EXISTS (SELECT 1 FROM event WHERE qualification = name) ORDER BY id");
  if (!select) return tl::unexpected(select.error());
  if (!gate.empty()) select->bind(1, gate);
  return names_of(*select);
}

Result<std::vector<std::string>> Journal::latest_qualifications() const {
  auto select = database_->prepare(
      // From each gate's newest back, so that only few of many have their events looked for.
      "SELECT name FROM qualification WHERE id IN (SELECT (SELECT id FROM qualification AS newest "
      "WHERE newest.gate = gates.gate AND EXISTS (SELECT 1 FROM event WHERE qualification = "
      "newest.name) ORDER BY number DESC LIMIT 1) FROM (SELECT DISTINCT gate FROM qualification) "
      "AS "
      "gates) ORDER BY id");
  if (!select) return tl::unexpected(select.error());
  return names_of(*select);
}

Result<std::string> Journal::latest_with(const std::string& gate, const std::string& kind) const {
  auto select = database_->prepare(
      "SELECT name FROM qualification WHERE gate = ?1 AND EXISTS (SELECT 1 FROM event WHERE "
      "qualification = name AND kind = ?2) ORDER BY number DESC LIMIT 1");
  if (!select) return tl::unexpected(select.error());
  select->bind(1, gate).bind(2, kind);
  auto row = select->step();
  if (!row) return tl::unexpected(row.error());
  return *row ? select->text(0) : std::string();
}

Result<std::string> Journal::start_qualification(Time time, const std::string& gate,
                                                 const Digest& bundle, const Digest& policy,
                                                 const Json& plan, const Json& criteria) {
  std::string name;
  auto done = database_->transaction([&]() -> Result<void> {
    auto insert = database_->prepare(
        "INSERT INTO qualification (name, gate, number, bundle, policy, started) "
        "SELECT ?1 || '-' || n, ?1, n, ?2, ?3, ?4 FROM "
        "(SELECT COALESCE(MAX(number), 0) + 1 AS n FROM qualification WHERE gate = ?1) "
        "RETURNING name");
    if (!insert) return tl::unexpected(insert.error());
    insert->bind(1, gate).bind(2, bundle.str()).bind(3, policy.str());
    insert->bind(4, time.time_since_epoch().count());
    auto row = insert->step();
    if (!row) return tl::unexpected(row.error());
    name = insert->text(0);
    if (auto end = insert->step(); !end) return tl::unexpected(end.error());
    auto event = append(time, name, {}, 0, kPlanCreated,
                        {{"bundle", bundle.str()},
                         {"criteria", criteria},
                         {"gate", gate},
                         {"policy", policy.str()},
                         {"plan", plan}});
    if (!event) return tl::unexpected(event.error());
    return {};
  });
  if (!done) return tl::unexpected(done.error());
  return name;
}

}  // namespace qualify::journal
