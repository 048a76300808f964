#include "signing.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "passphrase.hpp"

namespace qualify::cli {

void add_signing_options(CLI::App& command, SigningOptions& options, bool needs_key) {
  auto* key = command
                  .add_option("--key", options.key,
                              "Your private key: a PEM file (ECDSA P-256), or pkcs11:…")
                  ->type_name("FILE");
  if (needs_key) key->required();
  command
      .add_option("--passphrase-file", options.passphrase_file,
                  "Its passphrase, instead of asking on the terminal")
      ->type_name("FILE");
  command.add_option("--file", options.file, "Gates and people (default: qualification.yaml)")
      ->type_name("FILE");
}

void add_reason_option(CLI::App& command, SigningOptions& options) {
  command.add_option("--reason", options.reason, "Why; it is part of what is signed")
      ->type_name("WORDS")
      ->required();
}

std::filesystem::path qualification_file(const Session& session, const std::string& file) {
  return session.folder / (file.empty() ? "qualification.yaml" : file);
}

Result<std::unique_ptr<ledger::Signer>> load_signer(const Session& session,
                                                    const SigningOptions& options) {
  const auto ask = ask_passphrase(session, options.passphrase_file);
  // A token's key by its URI (RFC 7512); everything else is a file.
  if (options.key.starts_with("pkcs11:")) return ledger::load_key_from_store(options.key, ask);
  return ledger::load_key(session.folder / options.key, ask);
}

Result<Signing> begin_signing(Session& session, const SigningOptions& options, const char* role) {
  auto qualification = read_gates(session, options.file);
  if (!qualification) return tl::unexpected(qualification.error());
  if (qualification->role(role) == nullptr) {
    return fail(Errc::refused, std::string("nobody has the role '") + role + "'",
                qualification->file.string(),
                std::string("declare it: roles: {") + role + ": {people: [NAME]}}");
  }
  auto state = open_state(session);
  if (!state) return tl::unexpected(state.error());
  auto facts = standing::read_facts(*state, *qualification);
  if (!facts) return tl::unexpected(facts.error());
  if (!facts->people) return tl::unexpected(facts->faults.front());
  auto signer = load_signer(session, options);
  if (!signer) return tl::unexpected(signer.error());
  const Time now = session.clock.now();
  auto person = facts->people->person_of((*signer)->public_key().key_id(), now, role);
  if (!person) {
    Error error = person.error();
    if (error.context.empty()) error.context = (session.folder / options.key).string();
    return Unexpected(std::move(error));
  }
  auto all = standing::standings(*qualification, *facts, now);
  return Signing{std::move(*qualification),
                 std::move(*state),
                 std::move(*facts),
                 std::move(all),
                 std::move(*signer),
                 std::move(*person),
                 role};
}

void checkpoint_or_say(Session& session, run::State& state) {
  if (auto log = run::sign_checkpoint(state, session.clock.now()); !log) {
    session.err << "qualify: the record stands, without a checkpoint of the log: "
                << log.error().describe() << '\n';
  }
}

Result<ledger::Record> append_signed(Session& session, Signing& signing, ledger::RecordKind kind,
                                     const std::string& gate, const Digest& bundle,
                                     const Json& statement) {
  std::optional<ledger::Record> record;
  const auto done = signing.state.database.transaction([&]() -> Result<void> {
    auto appended =
        ledger::Ledger(signing.state.database)
            .append(*signing.signer, kind, gate, bundle, session.clock.now(), statement);
    if (!appended) return tl::unexpected(appended.error());
    // The log's time may be ahead of this clock: what counts is when the record says it was.
    const auto person = signing.facts.people->signer_of(*appended, signing.role);
    if (!person) return tl::unexpected(person.error());
    record = std::move(*appended);
    return {};
  });
  if (!done) return tl::unexpected(done.error());
  checkpoint_or_say(session, signing.state);
  return std::move(*record);
}

}  // namespace qualify::cli
