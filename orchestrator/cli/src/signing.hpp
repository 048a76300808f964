#pragma once

#include <memory>
#include <string>

#include "qualify/ledger/signer.hpp"
#include "qualify/standing/standing.hpp"
#include "session.hpp"

namespace CLI {
class App;
}

/// What `decide`, `waive`, `revoke` and `signoff` have in common: a person's key, and what the
/// database and qualification.yaml say before that person signs.
namespace qualify::cli {

struct SigningOptions {
  std::string key;
  std::string passphrase_file;
  std::string file;  ///< qualification.yaml
  std::string reason;
};
/// --key, --passphrase-file, --file; `needs_key`: --key must be given.
void add_signing_options(CLI::App& command, SigningOptions& options, bool needs_key = true);
void add_reason_option(CLI::App& command, SigningOptions& options);

/// qualification.yaml, by --file or here.
[[nodiscard]] std::filesystem::path qualification_file(const Session& session,
                                                       const std::string& file);

[[nodiscard]] Result<std::unique_ptr<ledger::Signer>> load_signer(const Session& session,
                                                                  const SigningOptions& options);

/// A state that is open for writing, with whoever is about to sign.
struct Signing {
  policy::Qualification qualification;
  run::State state;
  standing::Facts facts;
  std::vector<standing::Standing> standings;
  std::unique_ptr<ledger::Signer> signer;
  std::string person;
  const char* role;  ///< policy::role, for which the person signs
};
/// The key is asked for last, after everything else that may be wrong. Errors: refused (nobody who
/// has the role now), those of reading.
[[nodiscard]] Result<Signing> begin_signing(Session& session, const SigningOptions& options,
                                            const char* role);

/// Appends what a person signs, and a checkpoint of the log with it. Without the checkpoint the
/// record stands, and that is said on `err`.
[[nodiscard]] Result<ledger::Record> append_signed(Session& session, Signing& signing,
                                                   ledger::RecordKind kind, const std::string& gate,
                                                   const Digest& bundle, const Json& statement);

/// The checkpoint after something that was appended.
void checkpoint_or_say(Session& session, run::State& state);

}  // namespace qualify::cli
