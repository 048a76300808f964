#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "qualify/ledger/checkpoint.hpp"
#include "qualify/ledger/ledger.hpp"

/// The records as an RFC 6962 log. Format: docs/formats/log.md.
namespace qualify::ledger {

/// Canonical JSON of a Rekor v2 `hashedrekord` 0.0.2 body: digest of the signed bytes, signature
/// and public key. `key` is the record's own.
[[nodiscard]] std::string leaf_of(const Envelope& envelope, const PublicKey& key);

struct SignedCheckpoint {
  Checkpoint checkpoint;
  Time time;         ///< when it was signed, by our clock
  std::string note;  ///< as signed
};

/// Not thread-safe, as its database.
class Log {
 public:
  explicit Log(journal::Database& database) : database_(&database) {}

  /// Leaves in the tree. Ledger::append keeps it equal to the number of records.
  [[nodiscard]] Result<std::uint64_t> size() const;
  /// Hashes records that are not in the tree yet (those of an older schema).
  [[nodiscard]] Result<void> extend();
  /// Errors: invalid_input (beyond the log), integrity (a node is missing).
  [[nodiscard]] Result<Digest> root(std::uint64_t size) const;
  [[nodiscard]] Result<std::vector<Digest>> prove_inclusion(std::uint64_t index,
                                                            std::uint64_t size) const;
  [[nodiscard]] Result<std::vector<Digest>> prove_consistency(std::uint64_t old_size,
                                                              std::uint64_t size) const;

  /// Signs what the log is now and keeps it; the newest one again when nothing was added since.
  /// Errors: integrity (the log does not continue its newest checkpoint), busy, io.
  [[nodiscard]] Result<SignedCheckpoint> checkpoint(const LogSigner& signer, Time time);
  /// All, oldest first. Read without their signatures being checked: open_checkpoint does that.
  [[nodiscard]] Result<std::vector<SignedCheckpoint>> checkpoints() const;
  [[nodiscard]] Result<std::optional<SignedCheckpoint>> latest() const;

  /// The tlogEntries element of a Sigstore bundle: leaf, position and proof under `signed_root`.
  /// Errors: invalid_input (the checkpoint is older than the record).
  [[nodiscard]] Result<Json> entry(const Record& record, const SignedCheckpoint& signed_root,
                                   const LogVerifier& verifier) const;

 private:
  journal::Database* database_;
};

/// The entry's leaf is this envelope's, and its proof leads to a root that the log signed.
/// Returns that checkpoint. Errors: integrity, invalid_input.
[[nodiscard]] Result<Checkpoint> verify_entry(const Json& entry, const Envelope& envelope,
                                              const PublicKey& key, const LogVerifier& verifier);

/// Records, and the statement of each: null where its payload is no JSON.
using VisitBatch =
    std::function<void(const std::vector<Record>& records, const std::vector<Json>& statements)>;

struct LogAudit {
  std::uint64_t size = 0;       ///< records
  std::size_t checkpoints = 0;  ///< that were checked
  Digest root;                  ///< over all records, recomputed
  std::vector<Error> faults;    ///< all of them; empty = sound
};

/// Reads everything again: every record (signature, columns, canonical form), positions without
/// gaps, every tree node, every kept checkpoint's signature and root, and `remembered`: checkpoints
/// that somebody kept elsewhere, whose log this must continue.
/// Without a verifier the signatures of checkpoints are not checked, and that is a fault if there
/// are any. `threads`: for record signatures, at least 1. `visit` is given the records as well, in
/// log order, some at a time, right or wrong as they are; of a row that is no record only the fault
/// is told.
[[nodiscard]] LogAudit audit_log(journal::Database& database,
                                 const std::optional<LogVerifier>& verifier,
                                 const std::vector<std::string>& remembered, unsigned threads,
                                 const VisitBatch& visit = {});

}  // namespace qualify::ledger
