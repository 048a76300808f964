#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "qualify/journal/database.hpp"
#include "qualify/ledger/log.hpp"
#include "qualify/ledger/signer.hpp"
#include "qualify/store/blob_store.hpp"

namespace qualify::run {

/// The folders of one state, DESIGN "State": names only, no I/O.
struct StatePaths {
  std::filesystem::path folder;

  [[nodiscard]] std::filesystem::path bundles() const { return folder / "store"; }
  [[nodiscard]] std::filesystem::path evidence() const { return folder / "evidence"; }
  [[nodiscard]] std::filesystem::path runs() const { return folder / "runs"; }
  [[nodiscard]] std::filesystem::path local_jobs() const { return folder / "local"; }
  [[nodiscard]] std::filesystem::path temporary() const { return folder / "tmp"; }
  [[nodiscard]] std::filesystem::path database() const { return folder / "qualify.db"; }
  [[nodiscard]] std::filesystem::path transcript() const { return folder / "transcript.jsonl"; }
  [[nodiscard]] std::filesystem::path lock() const { return folder / "lock"; }
  [[nodiscard]] std::filesystem::path daemon_lock() const { return folder / "daemon.lock"; }
  [[nodiscard]] std::filesystem::path signing_key() const { return folder / "keys" / "signer.pem"; }
  [[nodiscard]] std::filesystem::path log_key() const { return folder / "keys" / "log.pem"; }
};

/// An opened state folder. Not thread-safe; several processes may have one open, and the writers
/// among them take turns by `StatePaths::lock`.
struct State {
  StatePaths paths;
  store::BlobStore bundles;
  store::BlobStore evidence;
  journal::Database database;
};

/// Makes a fresh state with a signing key and a log key. Errors: already_exists, integrity (a state
/// is there whose database is missing), io, no_space.
[[nodiscard]] Result<void> init_state(const std::filesystem::path& folder);

/// Errors: not_found (hint: qualify init), io, busy, integrity (hint: qualify doctor --rebuild),
/// unsupported.
[[nodiscard]] Result<State> open_state(const std::filesystem::path& folder);
/// For reading commands: needs no write access.
[[nodiscard]] Result<State> open_state_read_only(const std::filesystem::path& folder);

/// Signs what the log of a state is now, by its own log key, which is made if there is none yet.
/// Errors: integrity (the log does not continue its newest checkpoint), busy, io, refused (others
/// may read the key).
[[nodiscard]] Result<ledger::SignedCheckpoint> sign_checkpoint(State& state, Time time);
/// Who signs the log of a state; nothing when it has no log key yet. Errors: invalid_input, io.
[[nodiscard]] Result<std::optional<ledger::LogVerifier>> log_verifier(const StatePaths& paths);

}  // namespace qualify::run
