#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "../commands.hpp"
#include "../signing.hpp"
#include "../table.hpp"
#include "qualify/certify/records.hpp"

namespace qualify::cli {

namespace {

struct Options {
  SigningOptions signing;
  std::string record;
  bool json = false;
};

bool revoked(const standing::Facts& facts, const std::string& id) {
  return standing::revoked_records(facts.records, facts.own_key,
                                   facts.people ? &*facts.people : nullptr)
      .contains(id);
}

Result<Exit> run_revoke(Session& session, const Options& options) {
  auto signing = begin_signing(session, options.signing, policy::role::kRevoke);
  if (!signing) return tl::unexpected(signing.error());
  const auto target = ledger::Ledger(signing->state.database).find(options.record);
  if (!target) return tl::unexpected(target.error());
  const std::string what =
      std::string(ledger::name_of(target->kind)) + " " + target->id.substr(0, 12);
  if (target->kind == ledger::RecordKind::revocation) {
    return fail(Errc::refused, "a revocation is final", what);
  }
  if (target->kind == ledger::RecordKind::grant) {
    return fail(Errc::refused, "a grant is taken back by whoever operates the state", what,
                "qualify reservation revoke NAME --gate " + target->gate);
  }
  if (revoked(signing->facts, target->id)) {
    return fail(Errc::refused, "it is revoked already", what);
  }
  const auto record =
      append_signed(session, *signing, ledger::RecordKind::revocation, target->gate, Digest(),
                    statement_of(certify::Revocation{target->id, target->kind, signing->person,
                                                     options.signing.reason}));
  if (!record) return tl::unexpected(record.error());

  const auto facts = standing::read_facts(signing->state, signing->qualification);
  if (!facts) return tl::unexpected(facts.error());
  const bool counts = revoked(*facts, target->id);
  // What fell with it: everything that was closed before and is not now.
  std::vector<std::string> fell;
  const auto after = standing::standings(signing->qualification, *facts, session.clock.now());
  for (std::size_t i = 0; i < after.size() && i < signing->standings.size(); ++i) {
    if (standing::is_closed(signing->standings[i].status) &&
        !standing::is_closed(after[i].status)) {
      fell.push_back("gate " + after[i].gate);
    }
  }
  for (const auto& release : standing::release_standings(signing->qualification, *facts, after)) {
    if (release.status == standing::ReleaseStanding::Status::stale) {
      fell.push_back("release " + release.release);
    }
  }
  if (options.json) {
    session.print_json({{"record", record->id},
                        {"kind", "revocation"},
                        {"person", signing->person},
                        {"revokes", target->id},
                        {"counts", counts},
                        {"stale", fell}});
    return Exit::ok;
  }
  Table table({"revocation", record->id.substr(0, 12) + " by " + signing->person});
  table.add({"of", what + (target->gate.empty() ? "" : " of " + target->gate)});
  if (!counts) {
    table.add(
        {"counts",
         "not yet: " + std::to_string(signing->qualification.role(policy::role::kRevoke)->needed) +
             " people must revoke it"});
  }
  std::string all;
  for (const std::string& each : fell) all += (all.empty() ? "" : ", ") + each;
  table.add({"stale now", all.empty() ? "nothing that was closed" : all});
  table.print(session.out, session.width);
  return Exit::ok;
}

}  // namespace

void add_revoke(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "revoke", "Sign that a record counts for nothing any more, nor what rests on it");
  command
      ->add_option(
          "RECORD", options->record,
          "Certificate, decision, waiver, baseline, approval or sign-off, or its beginning")
      ->required();
  add_reason_option(*command, options->signing);
  add_signing_options(*command, options->signing);
  command->add_flag("--json", options->json, "Print one JSON record");
  command->callback([&session, options] { session.finish(run_revoke(session, *options)); });
}

}  // namespace qualify::cli
