#include "qualify/ledger/ledger.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "qualify/ledger/log.hpp"

namespace qualify::ledger {

namespace {

constexpr std::array kKinds = {"certificate", "grant",  "revocation", "baseline",
                               "decision",    "waiver", "approval",   "signoff"};
constexpr const char* kStatementType = "https://in-toto.io/Statement/v1";
constexpr std::size_t kMinPrefix = 6;  // hex digits
constexpr std::size_t kPage = 256;     // records in memory at once

constexpr const char* kSelect =
    "SELECT position, kind, id, gate, bundle, time, payload_type, payload, signature, key_id, pem "
    "FROM record LEFT JOIN public_key USING (key_id) ";

/// The part of a statement that makes its record's columns signed content.
Json about(RecordKind kind, const std::string& gate, const Digest& bundle, Time time) {
  return {{"kind", name_of(kind)},
          {"gate", gate},
          {"bundle", bundle == Digest() ? Json(nullptr) : Json(bundle.str())},
          {"time", format_time(time)}};
}

/// Empty when it is a statement that can be signed, else what is wrong with it.
std::string fault_of(const Json& statement) {
  if (!statement.is_object()) return "not an object";
  if (statement.value("_type", Json()) != kStatementType) return "_type is not Statement v1";
  const auto subject = statement.find("subject");
  if (subject == statement.end() || !subject->is_array() || subject->empty()) return "no subject";
  for (const Json& each : *subject) {
    if (!each.is_object() || !each.contains("digest") || !each.at("digest").is_object() ||
        each.at("digest").empty()) {
      return "a subject without digest";
    }
  }
  if (!statement.value("predicateType", Json()).is_string()) return "no predicateType";
  const auto predicate = statement.find("predicate");
  if (predicate == statement.end() || !predicate->is_object()) return "no predicate";
  return {};
}

Result<Record> record_from(const journal::Statement& row) {
  Record record;
  record.index = row.number(0);
  const auto damaged = [&](const std::string& what) {
    return fail(Errc::integrity, what, "record " + std::to_string(record.index),
                "see everything that is wrong with: qualify verify");
  };
  const auto kind = parse_record_kind(row.text(1));
  if (!kind) return damaged(kind.error().message);
  record.kind = *kind;
  record.id = row.text(2);
  record.gate = row.text(3);
  if (!row.is_null(4)) {
    const auto bundle = Digest::parse(row.text(4));
    if (!bundle) return damaged(bundle.error().message);
    record.bundle = *bundle;
  }
  record.time = Time(Duration(row.number(5)));
  record.envelope = {row.text(6), row.text(7), row.text(8), row.text(9)};
  if (row.is_null(10)) return damaged("its public key is missing");
  record.public_key_pem = row.text(10);
  return record;
}

Result<std::vector<Record>> all_of(journal::Statement& select) {
  std::vector<Record> records;
  for (;;) {
    auto row = select.step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return records;
    auto record = record_from(select);
    if (!record) return tl::unexpected(record.error());
    records.push_back(std::move(*record));
  }
}

Result<void> remember_key(const journal::Database& database, const PublicKey& key) {
  auto insert = database.prepare(
      "INSERT INTO public_key (key_id, pem) SELECT ?1, ?2 "
      "WHERE NOT EXISTS (SELECT 1 FROM public_key WHERE key_id = ?1)");
  if (!insert) return tl::unexpected(insert.error());
  insert->bind(1, key.key_id()).bind(2, key.pem());
  auto done = insert->step();
  if (!done) return tl::unexpected(done.error());
  return {};
}

/// The newest record's time; the beginning of time for an empty log.
Result<Time> newest_time(const journal::Database& database) {
  auto select = database.prepare("SELECT time FROM record ORDER BY position DESC LIMIT 1");
  if (!select) return tl::unexpected(select.error());
  auto row = select->step();
  if (!row) return tl::unexpected(row.error());
  return *row ? Time(Duration(select->number(0))) : Time::min();
}

Result<Record> sign_record(const Signer& signer, RecordKind kind, const std::string& gate,
                           const Digest& bundle, Time time, const Json& statement) {
  Json whole = statement;
  whole["predicate"]["record"] = about(kind, gate, bundle, time);
  auto payload = canonical_json(whole);
  if (!payload) return tl::unexpected(payload.error());
  auto envelope = sign_envelope(signer, kInTotoPayloadType, std::move(*payload));
  if (!envelope) return tl::unexpected(envelope.error());
  Record record;
  record.kind = kind;
  record.id = sha256(envelope->payload).hex();
  record.gate = gate;
  record.bundle = bundle;
  record.time = time;
  record.envelope = std::move(*envelope);
  record.public_key_pem = signer.public_key().pem();
  // What comes out must be what verify_record takes: a statement that speaks of another bundle than
  // its record is stopped here.
  if (auto consistent = verify_record(record, signer.public_key(), statement_of(record));
      !consistent) {
    return fail(Errc::invalid_input, consistent.error().message);
  }
  return record;
}

/// Gives the record its position.
Result<void> insert_record(const journal::Database& database, Record& record) {
  auto insert = database.prepare(
      "INSERT INTO record (position, kind, id, gate, bundle, time, payload_type, payload, "
      "signature, key_id) SELECT COALESCE(MAX(position) + 1, 0), ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "
      "?9 FROM record RETURNING position");
  if (!insert) return tl::unexpected(insert.error());
  insert->bind(1, name_of(record.kind)).bind(2, record.id).bind(3, record.gate);
  if (record.bundle == Digest()) {
    insert->bind_null(4);
  } else {
    insert->bind(4, record.bundle.str());
  }
  insert->bind(5, record.time.time_since_epoch().count()).bind(6, record.envelope.payload_type);
  insert->bind(7, record.envelope.payload).bind_blob(8, record.envelope.signature);
  insert->bind(9, record.envelope.key_id);
  auto row = insert->step();
  if (!row) return tl::unexpected(row.error());
  record.index = insert->number(0);
  if (auto end = insert->step(); !end) return tl::unexpected(end.error());
  return {};
}

}  // namespace

const char* name_of(RecordKind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

Result<RecordKind> parse_record_kind(const std::string& text) {
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (text == kKinds[i]) return static_cast<RecordKind>(i);
  }
  return fail(Errc::invalid_input, "not a kind of record: '" + text + "'");
}

Result<Record> Ledger::append(const Signer& signer, RecordKind kind, const std::string& gate,
                              const Digest& bundle, Time time, const Json& statement) {
  if (auto fault = fault_of(statement); !fault.empty()) {
    return fail(Errc::invalid_input, "not an in-toto statement: " + fault);
  }
  if (statement.at("predicate").contains("record")) {
    return fail(Errc::invalid_input,
                "the statement has a predicate.record; the ledger writes that");
  }
  Record record;
  // Signed inside the transaction: position and time order are one.
  auto done = database_->transaction([&]() -> Result<void> {
    const auto newest = newest_time(*database_);
    if (!newest) return tl::unexpected(newest.error());
    auto made = sign_record(signer, kind, gate, bundle, std::max(time, *newest), statement);
    if (!made) return tl::unexpected(made.error());
    record = std::move(*made);
    if (auto kept = remember_key(*database_, signer.public_key()); !kept) return kept;
    if (auto kept = insert_record(*database_, record); !kept) return kept;
    return Log(*database_).extend();
  });
  if (!done) return tl::unexpected(done.error());
  return record;
}

Result<std::vector<Record>> Ledger::records(std::optional<RecordKind> kind,
                                            const std::string& gate) const {
  std::string sql = kSelect;
  if (kind) sql += "WHERE kind = ?1 ";
  if (!gate.empty()) sql += kind ? "AND gate = ?2 " : "WHERE gate = ?2 ";
  auto select = database_->prepare(sql + "ORDER BY position");
  if (!select) return tl::unexpected(select.error());
  if (kind) select->bind(1, name_of(*kind));
  if (!gate.empty()) select->bind(2, gate);
  return all_of(*select);
}

Result<std::optional<Record>> Ledger::newest(RecordKind kind, const std::string& gate) const {
  auto select = database_->prepare(std::string(kSelect) +
                                   "WHERE kind = ?1 AND gate = ?2 ORDER BY position DESC LIMIT 1");
  if (!select) return tl::unexpected(select.error());
  select->bind(1, name_of(kind)).bind(2, gate);
  auto found = all_of(*select);
  if (!found) return tl::unexpected(found.error());
  return found->empty() ? std::nullopt : std::optional(std::move(found->front()));
}

Result<std::vector<Ledger::Row>> Ledger::rows(std::int64_t position, std::size_t count) const {
  auto select =
      database_->prepare(std::string(kSelect) + "WHERE position >= ?1 ORDER BY position LIMIT ?2");
  if (!select) return tl::unexpected(select.error());
  select->bind(1, position).bind(2, static_cast<std::int64_t>(count));
  std::vector<Row> rows;
  for (;;) {
    auto row = select->step();
    if (!row && rows.empty()) return tl::unexpected(row.error());
    if (!row || !*row) return rows;
    rows.push_back({select->number(0), record_from(*select)});
  }
}

Result<void> Ledger::for_each(const Visit& visit) const {
  for (std::int64_t position = 0;;) {
    auto page = rows(position, kPage);
    if (!page) return tl::unexpected(page.error());
    if (page->empty()) return {};
    position = page->back().position + 1;
    for (Row& row : *page) visit(row.position, std::move(row.record));
  }
}

Result<Record> Ledger::find(const std::string& id) const {
  if (id.size() < kMinPrefix || id.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return fail(Errc::invalid_input, "not the id of a record: '" + id + "'", {},
                "an id is lower-case hex, at least its first 6 digits");
  }
  // 'g' follows every hex digit: the range holds what begins with the prefix, by index.
  auto select = database_->prepare(std::string(kSelect) +
                                   "WHERE id >= ?1 AND id < ?1 || 'g' ORDER BY position LIMIT 10");
  if (!select) return tl::unexpected(select.error());
  select->bind(1, id);
  auto found = all_of(*select);
  if (!found) return tl::unexpected(found.error());
  if (found->empty()) {
    return fail(Errc::not_found, "no record '" + id + "'", {}, "see them with: qualify cert list");
  }
  if (found->size() > 1) {
    std::string ids;
    for (const Record& record : *found) ids += (ids.empty() ? "" : ", ") + record.id.substr(0, 16);
    return fail(Errc::invalid_input, "'" + id + "' begins more than one record", {},
                "say more digits: " + ids);
  }
  return std::move(found->front());
}

Result<Json> statement_of(const Record& record) {
  return parse_json(record.envelope.payload, "statement");
}

Result<void> verify_record(const Record& record) {
  const auto key = PublicKey::parse_pem(record.public_key_pem);
  if (!key) {
    return fail(Errc::integrity, key.error().message, "record " + std::to_string(record.index));
  }
  return verify_record(record, *key, statement_of(record));
}

Result<void> verify_record(const Record& record, const PublicKey& key,
                           const Result<Json>& statement) {
  const auto wrong = [&](const std::string& what) {
    return fail(Errc::integrity, what,
                "record " + std::to_string(record.index) + " (" + record.id.substr(0, 12) + ")");
  };
  const Envelope& envelope = record.envelope;
  if (envelope.payload_type != kInTotoPayloadType) {
    return wrong("its payload type is '" + envelope.payload_type + "'");
  }
  if (sha256(envelope.payload).hex() != record.id) {
    return wrong("its content is not what its id names");
  }
  if (auto good = verify_envelope(envelope, key); !good) return wrong(good.error().message);

  if (!statement) return wrong(statement.error().message);
  const auto canonical = canonical_json(*statement);
  if (!canonical || *canonical != envelope.payload)
    return wrong("its content is not canonical JSON");
  if (auto fault = fault_of(*statement); !fault.empty()) {
    return wrong("not an in-toto statement: " + fault);
  }
  if (statement->at("predicate").value("record", Json()) !=
      about(record.kind, record.gate, record.bundle, record.time)) {
    return wrong("kind, gate, bundle or time are not those that were signed");
  }
  if (record.bundle != Digest() && statement->at("subject").front().at("digest").value(
                                       "sha256", Json()) != record.bundle.hex()) {
    return wrong("its subject is another bundle");
  }
  return {};
}

}  // namespace qualify::ledger
