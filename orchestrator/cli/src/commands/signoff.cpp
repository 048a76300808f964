#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "../commands.hpp"
#include "../signing.hpp"
#include "../standing_json.hpp"
#include "../table.hpp"
#include "qualify/signoff/signoff.hpp"

namespace qualify::cli {

namespace {

struct Options {
  SigningOptions signing;
  std::string release;
  std::string comment;
  std::string folder;
  bool json = false;
};

Result<standing::ReleaseStanding> find_release(run::State& state,
                                               const policy::Qualification& qualification,
                                               const std::string& name, Time now) {
  if (qualification.release(name) == nullptr) {
    std::string known;
    for (const policy::Release& each : qualification.releases) {
      known += (known.empty() ? "" : ", ") + each.name;
    }
    return fail(Errc::not_found, "no release '" + name + "'", qualification.file.string(),
                known.empty() ? "declare one below 'releases:'" : "releases there: " + known);
  }
  const auto facts = standing::read_facts(state, qualification);
  if (!facts) return tl::unexpected(facts.error());
  const auto all = standing::standings(qualification, *facts, now);
  for (auto& each : standing::release_standings(qualification, *facts, all)) {
    if (each.release == name) return std::move(each);
  }
  return fail(Errc::internal, "a release without standing");
}

Result<void> export_to(Session& session, run::State& state,
                       const standing::ReleaseStanding& release, const std::string& folder) {
  if (release.status != standing::ReleaseStanding::Status::signed_off) {
    return fail(Errc::refused,
                "only what is signed off can be exported: " + release.reasons.front(),
                "release " + release.release, release.next);
  }
  const auto record = ledger::Ledger(state.database).find(release.signoff);
  if (!record) return tl::unexpected(record.error());
  return signoff::export_release(state, *record, (session.folder / folder).lexically_normal());
}

Exit exit_of(const standing::ReleaseStanding& release) {
  return release.status == standing::ReleaseStanding::Status::signed_off ? Exit::ok
                                                                         : Exit::undecided;
}

void print(Session& session, const standing::ReleaseStanding& release) {
  Table table({"release", release.release + ": " + standing::name_of(release.status)});
  for (const std::string& reason : release.reasons) table.add({"", reason});
  for (const auto& gate : release.content.gates) {
    std::string by;
    if (!gate.certificate.empty()) by = "certificate " + gate.certificate.substr(0, 12);
    for (const std::string& id : gate.decisions) {
      by += (by.empty() ? "" : ", ") + ("decision " + id.substr(0, 12));
    }
    for (const std::string& id : gate.waivers) {
      by += (by.empty() ? "" : ", ") + ("waiver " + id.substr(0, 12));
    }
    table.add({"gate", gate.gate + ": " + by});
  }
  for (const auto& [name, bundle] : release.content.bundles) {
    table.add({"bundle", name + " (" + bundle.brief() + ")"});
  }
  table.print(session.out, session.width);
  if (!release.next.empty()) session.out << "Next: " << printable(release.next) << '\n';
}

Result<Exit> run_signoff(Session& session, const Options& options) {
  const auto qualification = read_gates(session, options.signing.file);
  if (!qualification) return tl::unexpected(qualification.error());
  const bool signs = !options.signing.key.empty();
  auto state = signs ? open_state(session) : open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  auto release = find_release(*state, *qualification, options.release, session.clock.now());
  if (!release) return tl::unexpected(release.error());
  std::string approval;
  if (signs) {
    const auto signer = load_signer(session, options.signing);
    if (!signer) return tl::unexpected(signer.error());
    const auto made =
        signoff::sign_release(*state, qualification_file(session, options.signing.file),
                              options.release, **signer, options.comment, session.clock.now());
    if (!made) return tl::unexpected(made.error());
    approval = made->approval.id;
    checkpoint_or_say(session, *state);
    release = find_release(*state, *qualification, options.release, session.clock.now());
    if (!release) return tl::unexpected(release.error());
  }
  if (!options.folder.empty()) {
    if (auto done = export_to(session, *state, *release, options.folder); !done) {
      return tl::unexpected(done.error());
    }
  }
  if (options.json) {
    Json record = to_json(*release);
    record["approval"] = approval.empty() ? Json(nullptr) : Json(approval);
    record["exported"] = options.folder.empty() ? Json(nullptr) : Json(options.folder);
    session.print_json(std::move(record));
    return exit_of(*release);
  }
  if (!approval.empty()) session.out << "approval " << approval.substr(0, 12) << " is signed\n";
  print(session, *release);
  if (!options.folder.empty()) {
    session.out << "exported to " << printable(options.folder)
                << "; whoever has it checks it with: qualify verify " << printable(options.folder)
                << '\n';
  }
  // One of several signatures is what was asked for.
  return signs ? Exit::ok : exit_of(*release);
}

}  // namespace

void add_signoff(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("signoff", "Sign a release off, show what that rests on, or export it");
  command->add_option("RELEASE", options->release, "As declared in qualification.yaml")->required();
  command->add_option("--comment", options->comment, "A remark; it is part of what is signed")
      ->type_name("WORDS");
  command
      ->add_option("--export", options->folder,
                   "Write what is signed off to a folder that verifies anywhere")
      ->type_name("DIR");
  add_signing_options(*command, options->signing, false);
  command->add_flag("--json", options->json, "Print one JSON record");
  command->callback([&session, options] { session.finish(run_signoff(session, *options)); });
}

}  // namespace qualify::cli
