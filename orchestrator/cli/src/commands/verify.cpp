#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "../commands.hpp"
#include "../subject.hpp"
#include "../table.hpp"
#include "qualify/base/files.hpp"
#include "qualify/signoff/signoff.hpp"
#include "qualify/standing/people.hpp"
#include "qualify/verify/verify.hpp"

namespace qualify::cli {

namespace {

struct Options {
  std::string folder;
  std::string file;
  std::string log_key;
  bool recompute = false;
  std::vector<std::string> checkpoints;
  bool json = false;
};

/// The people of qualification.yaml; nobody where there is no such file and none was named.
Result<std::optional<ledger::Trust>> read_people(const Session& session, const Options& options,
                                                 const run::StatePaths& paths) {
  std::vector<std::filesystem::path> candidates;
  if (!options.file.empty()) {
    candidates = {session.folder / options.file};
  } else {
    candidates = {session.folder / "qualification.yaml",
                  paths.folder.parent_path() / "qualification.yaml"};
  }
  for (const auto& file : candidates) {
    const auto qualification = policy::read_qualification(file);
    if (!qualification) {
      if (qualification.error().code == Errc::not_found && options.file.empty()) continue;
      return tl::unexpected(qualification.error());
    }
    auto people = standing::load_people(*qualification, standing::keys_beside(file));
    if (!people) return tl::unexpected(people.error());
    return std::optional<ledger::Trust>(std::move(*people));
  }
  return std::optional<ledger::Trust>();
}

Result<Exit> run_verify_folder(Session& session, const Options& options) {
  if (options.recompute) {
    return fail(Errc::usage, "an exported folder holds no evidence to judge again", "--recompute");
  }
  signoff::Known known;
  if (!options.file.empty()) known.qualification = session.folder / options.file;
  if (!options.log_key.empty()) {
    auto text = read_file(session.folder / options.log_key, 4096);
    if (!text) return tl::unexpected(text.error());
    text->erase(std::min(text->find_first_of("\r\n"), text->size()));
    known.log = std::move(*text);
  }
  auto kept = read_kept_checkpoints(session, options.checkpoints);
  if (!kept) return tl::unexpected(kept.error());
  known.checkpoints = std::move(*kept);
  const auto folder = (session.folder / options.folder).lexically_normal();
  const auto checked =
      signoff::verify_folder(folder.has_filename() ? folder : folder.parent_path(), known);
  if (!checked) return tl::unexpected(checked.error());
  Json keys = Json::object();
  for (const auto& [name, id] : checked->keys) keys[name] = id;
  Json record = {{"release", checked->release},       {"signed_off", format_time(checked->time)},
                 {"people", checked->people},         {"records", checked->records},
                 {"checkpoint", checked->checkpoint}, {"log_key", checked->log_key},
                 {"keys", std::move(keys)},           {"anchored", checked->anchored}};
  std::string names;
  for (const std::string& name : checked->people) names += (names.empty() ? "" : ", ") + name;
  const Exit exit = session.report(
      std::move(record), checked->faults, options.json, "release " + checked->release,
      "signed off " + format_time(checked->time).substr(0, 19) + "Z by " + names + "; " +
          std::to_string(checked->records) + " records, each signed and in the log (" +
          checked->checkpoint + ")");
  if (exit == Exit::ok && !options.json) {
    if (!checked->anchored) {
      session.out << "Keys that the folder itself names; compare them with what you know:\n";
    }
    for (const auto& [name, id] : checked->keys) {
      session.out << "  " << printable(name) << "  " << id << '\n';
    }
    session.out << "  log  " << printable(checked->log_key) << '\n';
    if (!checked->anchored) {
      session.out << "or have them compared: qualify verify DIR --file YOUR/qualification.yaml "
                     "--log-key YOUR/log.vkey\n";
    }
  }
  return exit;
}

Result<Exit> run_verify(Session& session, const Options& options) {
  if (!options.folder.empty()) return run_verify_folder(session, options);
  if (!options.log_key.empty()) {
    return fail(Errc::usage, "a state has its log's key; --log-key is for an exported folder");
  }
  auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  verify::Options wanted;
  wanted.recompute = options.recompute;
  wanted.threads = std::max(1U, std::thread::hardware_concurrency());
  wanted.scratch = scratch_folder(session);
  auto people = read_people(session, options, state->paths);
  if (!people) return tl::unexpected(people.error());
  wanted.people = std::move(*people);
  auto kept = read_kept_checkpoints(session, options.checkpoints);
  if (!kept) return tl::unexpected(kept.error());
  wanted.remembered = std::move(*kept);
  const auto found = verify::verify_state(*state, wanted);
  if (!found) return tl::unexpected(found.error());
  Json record = {{"records", found->records},
                 {"certificates", found->certificates},
                 {"checkpoints", found->checkpoints},
                 {"bundles", found->bundles},
                 {"evidence", found->evidence},
                 {"recomputed", found->recomputed},
                 {"signed_by_people", found->signed_by_people},
                 {"signoffs", found->signoffs}};
  const auto count = [](std::uint64_t number, const std::string& what) {
    return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
  };
  std::string whole =
      count(found->records, "record") + " (" + count(found->certificates, "certificate") +
      (found->signed_by_people == 0
           ? std::string()
           : ", " + std::to_string(found->signed_by_people) + " signed by people") +
      (found->signoffs == 0 ? std::string() : ", " + count(found->signoffs, "sign-off")) +
      ") and " + count(found->checkpoints, "checkpoint") + " of the log, " +
      count(found->bundles, "bundle") + ", the evidence of " + count(found->evidence, "run");
  if (options.recompute) {
    whole += "; judged again: " + count(found->recomputed, "verdict") + ", all the same";
  }
  return session.report(std::move(record), found->faults, options.json,
                        state->paths.folder.string(), whole);
}

}  // namespace

void add_verify(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("verify", "Check the whole state, or an exported release; offline");
  command->add_option("DIR", options->folder, "An exported release, instead of the state");
  command
      ->add_option("--file", options->file,
                   "Whose word counts: your own qualification.yaml with its keys (for a state the "
                   "default is the one here or beside it)")
      ->type_name("FILE");
  command
      ->add_option("--log-key", options->log_key,
                   "Your own copy of the log's public key, for an exported release")
      ->type_name("FILE");
  command->add_flag("--recompute", options->recompute,
                    "Also judge every verdict again from its evidence");
  command
      ->add_option("--checkpoint", options->checkpoints,
                   "A checkpoint kept elsewhere, which the log must continue")
      ->type_name("FILE");
  command->add_flag("--json", options->json, "Print one JSON record");
  command->callback([&session, options] { session.finish(run_verify(session, *options)); });
}

}  // namespace qualify::cli
