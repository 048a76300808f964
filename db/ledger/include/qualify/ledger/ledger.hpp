#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "qualify/base/clock.hpp"
#include "qualify/journal/database.hpp"
#include "qualify/ledger/dsse.hpp"

namespace qualify::ledger {

/// What a record states.
enum class RecordKind {
  certificate,
  grant,
  revocation,
  baseline,
  decision,  ///< a person's, on one qualification
  waiver,    ///< a person's, of one gate, for a time
  approval,  ///< one person's signature under a release
  signoff    ///< that enough of them are there
};
[[nodiscard]] const char* name_of(RecordKind kind);
/// Errors: invalid_input.
[[nodiscard]] Result<RecordKind> parse_record_kind(const std::string& text);

/// One signed statement, append-only.
struct Record {
  std::int64_t index = 0;  ///< position in the log, from 0
  RecordKind kind = RecordKind::certificate;
  std::string id;    ///< hex digest of the statement payload: names the record for ever
  std::string gate;  ///< gate that it speaks of; an approval's and a signoff's: the release
  Digest bundle;     ///< subject; zero when it has none (grants) or several (approvals)
  Time time;         ///< when it was signed, by our clock
  Envelope envelope;
  std::string public_key_pem;
};

/// Signed records in SQLite, append-only by trigger; every append is also a leaf of the RFC 6962
/// log (log.hpp).
class Ledger {
 public:
  explicit Ledger(journal::Database& database) : database_(&database) {}

  /// Signs `statement` (in-toto Statement v1) and appends it. What the record is about is signed
  /// too: `predicate.record` = {bundle, gate, kind, time} is put into the statement first.
  /// Time never goes back along the log: a record gets the time of the newest one when the clock is
  /// behind that, so that position and time tell one story and nothing can be dated back.
  /// Durable when it returns, or with the transaction that it is called in.
  /// Errors: invalid_input (no such statement, or it has a predicate.record), busy, io, no_space.
  [[nodiscard]] Result<Record> append(const Signer& signer, RecordKind kind,
                                      const std::string& gate, const Digest& bundle, Time time,
                                      const Json& statement);
  /// In log order. Errors: integrity, io.
  [[nodiscard]] Result<std::vector<Record>> records(std::optional<RecordKind> kind = {},
                                                    const std::string& gate = {}) const;
  /// The last one of a kind and gate. Errors: integrity, io.
  [[nodiscard]] Result<std::optional<Record>> newest(RecordKind kind,
                                                     const std::string& gate) const;
  /// At most `count` rows from `position` on, in log order; one that is no record comes as the
  /// error that it is. Errors: io.
  struct Row {
    std::int64_t position;
    Result<Record> record;
  };
  [[nodiscard]] Result<std::vector<Row>> rows(std::int64_t position, std::size_t count) const;
  /// Every row, one at a time. Errors: io.
  using Visit = std::function<void(std::int64_t position, Result<Record> record)>;
  [[nodiscard]] Result<void> for_each(const Visit& visit) const;
  /// By id or unique prefix (>= 6 hex). Errors: not_found, invalid_input (ambiguous).
  [[nodiscard]] Result<Record> find(const std::string& id) const;

 private:
  journal::Database* database_;
};

/// The payload as JSON, whether or not it verifies. Errors: integrity (none).
[[nodiscard]] Result<Json> statement_of(const Record& record);

/// Signature, payload digest, id and every column of one record agree, and the payload has its
/// canonical form. Says nothing about whether the key is one to trust. Errors: integrity.
[[nodiscard]] Result<void> verify_record(const Record& record);
/// The same with what was parsed already: the key of record.public_key_pem, and the payload.
[[nodiscard]] Result<void> verify_record(const Record& record, const PublicKey& key,
                                         const Result<Json>& statement);

}  // namespace qualify::ledger
