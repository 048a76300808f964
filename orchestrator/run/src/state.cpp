#include "qualify/run/state.hpp"

#include <sys/stat.h>

#include "qualify/base/files.hpp"

namespace qualify::run {

namespace {

/// A database has been here: what it held is to be had back, and not begun anew.
bool lost_its_database(const StatePaths& paths) {
  std::error_code ignored;
  const bool ran = fs::exists(paths.runs()) && !fs::is_empty(paths.runs(), ignored);
  return !fs::exists(paths.database()) && (ran || fs::exists(paths.transcript()));
}

Unexpected fail_lost(const StatePaths& paths) {
  return fail(Errc::integrity, "the database is missing", paths.database().string(),
              "rebuild it from what lies beside it with: qualify doctor --rebuild");
}

Result<void> must_exist(const StatePaths& paths) {
  if (fs::exists(paths.database())) return {};
  if (lost_its_database(paths)) return fail_lost(paths);
  return fail(Errc::not_found, "no state folder", paths.folder.string(),
              "make one with: qualify init");
}

Result<journal::Database> open_database(const StatePaths& paths) {
  journal::OpenOptions options;
  options.transcript = paths.transcript();
  return journal::Database::open(paths.database(), options);
}

/// The log's name is no host's: a state may be carried elsewhere. It says whose log it is.
Result<ledger::LogSigner> make_log_key(const StatePaths& paths) {
  const auto signer = ledger::load_public_key(paths.signing_key().string() + ".pub");
  if (!signer) return tl::unexpected(signer.error());
  return ledger::LogSigner::create(paths.log_key(),
                                   "log-" + signer->key_id().substr(0, 12) + ".qualify");
}

}  // namespace

Result<void> init_state(const std::filesystem::path& folder) {
  const StatePaths paths{folder};
  if (fs::exists(paths.database())) {
    return fail(Errc::already_exists, "a state folder is there already", folder.string(),
                "go on with: qualify status");
  }
  if (lost_its_database(paths)) return fail_lost(paths);
  for (const fs::path& made : {paths.folder, paths.runs(), paths.local_jobs(), paths.temporary(),
                               paths.signing_key().parent_path()}) {
    if (auto done = make_folders(made); !done) return done;
  }
  ::chmod(paths.signing_key().parent_path().c_str(), 0700);
  if (!fs::exists(paths.signing_key())) {
    if (auto key = ledger::create_key(paths.signing_key()); !key) {
      return tl::unexpected(key.error());
    }
  }
  if (!fs::exists(paths.log_key())) {
    if (auto key = make_log_key(paths); !key) return tl::unexpected(key.error());
  }
  for (const fs::path& store : {paths.bundles(), paths.evidence()}) {
    if (auto opened = store::BlobStore::open(store); !opened) return tl::unexpected(opened.error());
  }
  // Last: a state without its database does not exist, so an init that was cut off can be repeated.
  auto database = open_database(paths);
  if (!database) return tl::unexpected(database.error());
  return {};
}

Result<State> open_state(const std::filesystem::path& folder) {
  const StatePaths paths{folder};
  if (auto there = must_exist(paths); !there) return tl::unexpected(there.error());
  auto bundles = store::BlobStore::open(paths.bundles());
  if (!bundles) return tl::unexpected(bundles.error());
  auto evidence = store::BlobStore::open(paths.evidence());
  if (!evidence) return tl::unexpected(evidence.error());
  auto database = open_database(paths);
  if (!database) return tl::unexpected(database.error());
  return State{paths, std::move(*bundles), std::move(*evidence), std::move(*database)};
}

Result<State> open_state_read_only(const std::filesystem::path& folder) {
  const StatePaths paths{folder};
  if (auto there = must_exist(paths); !there) return tl::unexpected(there.error());
  auto bundles = store::BlobStore::open_read_only(paths.bundles());
  if (!bundles) return tl::unexpected(bundles.error());
  auto evidence = store::BlobStore::open_read_only(paths.evidence());
  if (!evidence) return tl::unexpected(evidence.error());
  auto database = journal::Database::open_read_only(paths.database());
  if (!database) return tl::unexpected(database.error());
  return State{paths, std::move(*bundles), std::move(*evidence), std::move(*database)};
}

Result<ledger::SignedCheckpoint> sign_checkpoint(State& state, Time time) {
  const auto signer = fs::exists(state.paths.log_key())
                          ? ledger::LogSigner::load(state.paths.log_key())
                          : make_log_key(state.paths);
  if (!signer) return tl::unexpected(signer.error());
  return ledger::Log(state.database).checkpoint(*signer, time);
}

Result<std::optional<ledger::LogVerifier>> log_verifier(const StatePaths& paths) {
  const fs::path file = paths.log_key().string() + ".vkey";
  if (!fs::exists(file)) return std::optional<ledger::LogVerifier>();
  auto text = read_file(file);
  if (!text) return tl::unexpected(text.error());
  while (!text->empty() && text->back() == '\n') text->pop_back();
  auto verifier = ledger::LogVerifier::parse(*text);
  if (!verifier) return tl::unexpected(verifier.error());
  return std::optional<ledger::LogVerifier>(std::move(*verifier));
}

}  // namespace qualify::run
