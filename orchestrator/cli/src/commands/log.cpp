#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "../commands.hpp"
#include "qualify/base/files.hpp"
#include "qualify/ledger/log.hpp"

namespace qualify::cli {

namespace {

struct Options {
  std::string record;
  std::vector<std::string> checkpoints;
  std::string since;
  bool json = false;
};

Json to_json(const ledger::SignedCheckpoint& checkpoint) {
  return {{"origin", checkpoint.checkpoint.origin},
          {"size", checkpoint.checkpoint.size},
          {"root", checkpoint.checkpoint.root.str()},
          {"time", format_time(checkpoint.time)},
          {"note", checkpoint.note}};
}

Result<Exit> run_checkpoint(Session& session, const Options& options) {
  auto state = open_state(session);
  if (!state) return tl::unexpected(state.error());
  const auto checkpoint = run::sign_checkpoint(*state, session.clock.now());
  if (!checkpoint) return tl::unexpected(checkpoint.error());
  if (options.json) {
    session.print_json(to_json(*checkpoint));
  } else {
    session.out << checkpoint->note;  // as it is: it goes into a file
  }
  return Exit::ok;
}

Result<ledger::LogVerifier> verifier_of(const run::State& state) {
  auto verifier = run::log_verifier(state.paths);
  if (!verifier) return tl::unexpected(verifier.error());
  if (*verifier) return std::move(**verifier);
  return fail(Errc::not_found, "the log has no key yet", state.paths.log_key().string(),
              "sign it with: qualify log checkpoint");
}

Json hashes(const std::vector<Digest>& proof) {
  Json list = Json::array();
  for (const Digest& hash : proof) list.push_back(hash.str());
  return list;
}

/// That the log as it is now continues an older checkpoint.
Result<Exit> prove_consistency(Session& session, const run::State& state, ledger::Log& log,
                               const std::string& file, const ledger::SignedCheckpoint& now) {
  const auto verifier = verifier_of(state);
  if (!verifier) return tl::unexpected(verifier.error());
  const auto note = read_file(session.folder / file);
  if (!note) return tl::unexpected(note.error());
  const auto before = ledger::open_checkpoint(*note, *verifier);
  if (!before) return tl::unexpected(before.error());
  const auto proof = log.prove_consistency(before->size, now.checkpoint.size);
  if (!proof) return tl::unexpected(proof.error());
  session.print_json({{"from", {{"size", before->size}, {"root", before->root.str()}}},
                      {"to", to_json(now)},
                      {"consistency", hashes(*proof)}});
  return Exit::ok;
}

Result<Exit> run_prove(Session& session, const Options& options) {
  auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  ledger::Log log(state->database);
  const auto latest = log.latest();
  if (!latest) return tl::unexpected(latest.error());
  if (!*latest) {
    return fail(Errc::not_found, "the log has no checkpoint yet", state->paths.folder.string(),
                "sign one with: qualify log checkpoint");
  }
  if (!options.since.empty()) {
    return prove_consistency(session, *state, log, options.since, **latest);
  }
  if (options.record.empty()) {
    return fail(Errc::invalid_input, "nothing to prove", {},
                "name a record, or --since an older checkpoint");
  }
  const auto verifier = verifier_of(*state);
  if (!verifier) return tl::unexpected(verifier.error());
  const auto record = ledger::Ledger(state->database).find(options.record);
  if (!record) return tl::unexpected(record.error());
  auto entry = log.entry(*record, **latest, *verifier);
  if (!entry) {
    Error error = entry.error();
    if (error.hint.empty()) error.hint = "sign a newer one with: qualify log checkpoint";
    return Unexpected(std::move(error));
  }
  session.print_json({{"record", record->id}, {"entry", std::move(*entry)}});
  return Exit::ok;
}

Result<Exit> run_verify(Session& session, const Options& options) {
  auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  const auto verifier = run::log_verifier(state->paths);
  if (!verifier) return tl::unexpected(verifier.error());
  const auto kept = read_kept_checkpoints(session, options.checkpoints);
  if (!kept) return tl::unexpected(kept.error());
  const auto audit = ledger::audit_log(state->database, *verifier, *kept,
                                       std::max(1U, std::thread::hardware_concurrency()));
  return session.report(
      {{"size", audit.size}, {"checkpoints", audit.checkpoints}, {"root", audit.root.str()}},
      audit.faults, options.json, "log of " + std::to_string(audit.size) + " records",
      "every signature, position and tree node, and " + std::to_string(audit.checkpoints) +
          " checkpoints; root " + audit.root.str());
}

}  // namespace

void add_log(CLI::App& app, Session& session) {
  CLI::App* group = app.add_subcommand("log", "The log that every signed record is in");
  group->require_subcommand(1);
  const auto add = [&](const char* name, const char* text,
                       Result<Exit> (*action)(Session&, const Options&)) {
    auto options = std::make_shared<Options>();
    CLI::App* command = group->add_subcommand(name, text);
    command->callback([&session, options, action] { session.finish(action(session, *options)); });
    return std::pair(command, options);
  };
  {
    const auto [command, options] = add(
        "checkpoint", "Sign what the log is now, and print it: keep it elsewhere", run_checkpoint);
    command->add_flag("--json", options->json, "Print one JSON record");
  }
  {
    const auto [command, options] =
        add("prove", "That a record is in the log, or that the log continues a checkpoint (JSON)",
            run_prove);
    CLI::Option* record = command->add_option("RECORD", options->record, "Record or its beginning");
    command->add_option("--since", options->since, "An older checkpoint, kept elsewhere")
        ->type_name("FILE")
        ->excludes(record);
  }
  {
    const auto [command, options] =
        add("verify", "Read all of it again: signatures, tree, checkpoints", run_verify);
    command
        ->add_option("--checkpoint", options->checkpoints,
                     "A checkpoint kept elsewhere, which the log must continue")
        ->type_name("FILE");
    command->add_flag("--json", options->json, "Print one JSON record");
  }
}

}  // namespace qualify::cli
