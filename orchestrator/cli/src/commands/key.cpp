#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "../commands.hpp"
#include "../passphrase.hpp"
#include "../table.hpp"

namespace qualify::cli {

namespace {

struct Options {
  std::string file;
  std::string passphrase_file;
  bool encrypt = false;
  bool json = false;
};

/// Typed twice: a key whose passphrase was mistyped is lost.
Result<std::string> new_passphrase(const Session& session, const Options& options) {
  if (!options.passphrase_file.empty()) {
    return read_passphrase_file(session.folder / options.passphrase_file);
  }
  if (!options.encrypt) return std::string();
  auto first = read_hidden_line("New passphrase: ");
  if (!first) return first;
  const auto second = read_hidden_line("The same again: ");
  if (!second) return second;
  if (*first != *second) return fail(Errc::invalid_input, "the two passphrases are not the same");
  if (first->empty()) {
    return fail(Errc::invalid_input, "an empty passphrase protects nothing", {},
                "leave --encrypt out for a key without one");
  }
  return first;
}

Result<Exit> run_create(Session& session, const Options& options) {
  const std::filesystem::path file = session.folder / options.file;
  const auto passphrase = new_passphrase(session, options);
  if (!passphrase) return tl::unexpected(passphrase.error());
  const auto signer = ledger::create_key(file, *passphrase);
  if (!signer) return tl::unexpected(signer.error());
  const std::string id = (*signer)->public_key().key_id();
  if (options.json) {
    session.print_json({{"key", file.string()},
                        {"public_key", file.string() + ".pub"},
                        {"key_id", id},
                        {"encrypted", !passphrase->empty()}});
    return Exit::ok;
  }
  Table table({"private", options.file + (passphrase->empty() ? " (not encrypted)" : "")});
  table.add({"public", options.file + ".pub"});
  table.add({"key id", id});
  table.print(session.out, session.width);
  session.out
      << "Next: name the public key in the qualification.yaml that lies beside or above it:\n"
         "  people: {NAME: {keys: [{file: "
      << options.file << ".pub}]}}\n";
  return Exit::ok;
}

}  // namespace

void add_key(CLI::App& app, Session& session) {
  CLI::App* group = app.add_subcommand("key", "Make a person's key, to sign with");
  group->require_subcommand(1);
  auto options = std::make_shared<Options>();
  CLI::App* command = group->add_subcommand("create", "A fresh ECDSA P-256 key, in two PEM files");
  command
      ->add_option("FILE", options->file, "The private key; the public one is FILE.pub beside it")
      ->required();
  command->add_flag("--encrypt", options->encrypt, "Ask for a passphrase to encrypt it with");
  command
      ->add_option("--passphrase-file", options->passphrase_file,
                   "Encrypt it with this passphrase, without asking")
      ->type_name("FILE");
  command->add_flag("--json", options->json, "Print one JSON record");
  command->callback([&session, options] { session.finish(run_create(session, *options)); });
}

}  // namespace qualify::cli
