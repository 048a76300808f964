#pragma once

#include <optional>
#include <string>
#include <vector>

#include "qualify/base/clock.hpp"
#include "qualify/journal/database.hpp"
#include "qualify/ledger/dsse.hpp"

namespace qualify::ledger {

/// What a record states.
enum class RecordKind { certificate, grant, revocation };
[[nodiscard]] const char* name_of(RecordKind kind);

/// One signed statement, append-only.
struct Record {
  std::int64_t index = 0;  ///< position in the log, from 0
  RecordKind kind = RecordKind::certificate;
  std::string id;    ///< hex digest of the statement payload: names the record for ever
  std::string gate;  ///< gate it speaks of
  Digest bundle;     ///< subject; zero when it has none (grants)
  Time time;         ///< when it was signed, by our clock
  Envelope envelope;
  std::string public_key_pem;
};

/// Signed records in SQLite, append-only by trigger. Later grown into the RFC 6962 log.
class Ledger {
 public:
  explicit Ledger(journal::Database& database) : database_(&database) {}

  /// Signs `statement` (in-toto Statement, canonical bytes) and appends it. Durable when it
  /// returns.
  [[nodiscard]] Result<Record> append(const Signer& signer, RecordKind kind,
                                      const std::string& gate, const Digest& bundle, Time time,
                                      const Json& statement);
  [[nodiscard]] Result<std::vector<Record>> records(std::optional<RecordKind> kind = {},
                                                    const std::string& gate = {}) const;
  /// By id or unique prefix (>= 6 hex). Errors: not_found, invalid_input (ambiguous).
  [[nodiscard]] Result<Record> find(const std::string& id) const;

 private:
  journal::Database* database_;
};

/// Signature, payload digest and id of one record agree. Errors: integrity.
[[nodiscard]] Result<void> verify_record(const Record& record);

}  // namespace qualify::ledger
