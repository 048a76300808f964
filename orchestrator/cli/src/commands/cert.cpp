#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "../commands.hpp"
#include "../table.hpp"
#include "qualify/base/files.hpp"
#include "qualify/certify/statement.hpp"
#include "qualify/ledger/ledger.hpp"
#include "qualify/run/evidence.hpp"
#include "qualify/verify/verify.hpp"

namespace qualify::cli {

namespace {

struct Options {
  std::string id;
  std::string gate;
  std::string file;
  bool json = false;
};

Result<Exit> run_list(Session& session, const Options& options) {
  auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  const ledger::Ledger ledger(state->database);
  const auto records = ledger.records(ledger::RecordKind::certificate, options.gate);
  if (!records) return tl::unexpected(records.error());
  if (options.json) {
    Json list = Json::array();
    for (const ledger::Record& record : *records) {
      list.push_back(
          {{"id", record.id},
           {"gate", record.gate},
           {"bundle", record.bundle == Digest() ? Json(nullptr) : Json(record.bundle.str())},
           {"time", format_time(record.time)},
           {"key_id", record.envelope.key_id}});
    }
    session.print_json({{"certificates", std::move(list)}});
    return Exit::ok;
  }
  if (records->empty()) {
    session.out << "No certificate has been issued yet.\n";
    return Exit::ok;
  }
  Table table({"CERTIFICATE", "BUNDLE", "ISSUED", "GATE"});
  for (const ledger::Record& record : *records) {
    table.add({record.id.substr(0, 12), record.bundle == Digest() ? "-" : record.bundle.brief(),
               format_time(record.time).substr(0, 19) + "Z", record.gate});
  }
  table.print(session.out, session.width);
  return Exit::ok;
}

Result<ledger::Record> find(run::State& state, const std::string& id) {
  const ledger::Ledger ledger(state.database);
  auto record = ledger.find(id);
  if (record && record->kind != ledger::RecordKind::certificate) {
    return fail(Errc::invalid_input,
                "record " + record->id.substr(0, 12) + " is a " + ledger::name_of(record->kind));
  }
  return record;
}

/// The proof that a record is in the log, under its newest checkpoint; null while no checkpoint
/// covers it.
Result<Json> log_entry(run::State& state, const ledger::Record& record) {
  const ledger::Log log(state.database);
  const auto latest = log.latest();
  if (!latest) return tl::unexpected(latest.error());
  const auto verifier = run::log_verifier(state.paths);
  if (!verifier) return tl::unexpected(verifier.error());
  if (!*latest || !*verifier ||
      (*latest)->checkpoint.size <= static_cast<std::uint64_t>(record.index)) {
    return Json(nullptr);
  }
  return log.entry(record, **latest, **verifier);
}

Result<Exit> run_show(Session& session, const Options& options) {
  auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  const auto record = ledger::Ledger(state->database).find(options.id);  // of any kind
  if (!record) return tl::unexpected(record.error());
  if (options.json) {
    // The Sigstore bundle itself, as other verifiers read it.
    const auto entry = log_entry(*state, *record);
    if (!entry) return tl::unexpected(entry.error());
    session.out << ledger::sigstore_bundle(record->envelope, *entry).dump(2) << '\n';
    return Exit::ok;
  }
  const auto statement = parse_json(record->envelope.payload, "record " + record->id);
  if (!statement) return tl::unexpected(statement.error());
  Table table({ledger::name_of(record->kind), record->id});
  if (!record->gate.empty()) table.add({"gate", record->gate});
  if (record->bundle != Digest()) table.add({"bundle", record->bundle.str()});
  table.add({"issued", format_time(record->time)});
  table.add({"key", record->envelope.key_id});
  table.print(session.out, session.width);
  session.out << '\n' << printable_lines(statement->at("predicate").dump(2, ' ', false)) << '\n';
  return Exit::ok;
}

/// What was read of a certificate and of those that it rests on.
struct Read {
  std::vector<Error> faults;
  std::set<std::string> certificates;
  std::set<Digest> bundles;
  std::size_t runs = 0;

  void note(const Result<void>& result) {
    if (!result) faults.push_back(result.error());
  }
};

/// Signature, bundles and evidence of one, whatever its signature is worth: all faults are named.
void verify_one(run::State& state, const ledger::Record& record, Read& read) {
  if (!read.certificates.insert(record.id).second) return;
  read.note(ledger::verify_record(record));
  read.note(verify::check_signer(state, record));
  if (record.bundle != Digest() && read.bundles.insert(record.bundle).second) {
    for (const Error& fault : store::verify(state.bundles, record.bundle)) {
      read.faults.push_back(fault);
    }
  }
  const auto statement = parse_json(record.envelope.payload, "certificate");
  const auto says = statement ? certify::read_certified(statement->value("predicate", Json()))
                              : Result<certify::Certified>(tl::unexpected(statement.error()));
  if (!says) {
    read.faults.push_back(says.error());
    return;
  }
  for (const certify::Certified::Run& run : says->runs) {
    read.note(run::verify_evidence(state.evidence, run.evidence));
    ++read.runs;
  }
  for (const certify::PartCitation& part : says->parts) {
    if (part.certificate.empty())
      continue;  // people decided: qualify verify checks whose word it is
    const auto cited = find(state, part.certificate);
    if (cited) {
      verify_one(state, *cited, read);
    } else {
      read.faults.push_back(cited.error());
    }
  }
}

Result<Exit> run_verify(Session& session, const Options& options) {
  auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  const auto record = find(*state, options.id);
  if (!record) return tl::unexpected(record.error());
  Read read;
  verify_one(*state, *record, read);
  const std::string runs = "the evidence of " + std::to_string(read.runs) + " runs are whole";
  const std::string whole = record->bundle == Digest()
                                ? "gate " + record->gate + ": signature, " +
                                      std::to_string(read.certificates.size() - 1) +
                                      " certificates that it rests on, their bundles and " + runs
                                : "gate " + record->gate + ", bundle " + record->bundle.brief() +
                                      ": signature, bundle and " + runs;
  return session.report({{"certificate", record->id}}, read.faults, options.json, record->id,
                        whole);
}

}  // namespace

void add_cert(CLI::App& app, Session& session) {
  CLI::App* group = app.add_subcommand("cert", "List, show and verify certificates");
  group->require_subcommand(1);
  const auto add = [&](const char* name, const char* text,
                       Result<Exit> (*action)(Session&, const Options&)) {
    auto options = std::make_shared<Options>();
    CLI::App* command = group->add_subcommand(name, text);
    command->add_flag("--json", options->json, "Print one JSON record");
    command->callback([&session, options, action] { session.finish(action(session, *options)); });
    return std::pair(command, options);
  };
  {
    const auto [command, options] = add("list", "Certificates of this state", run_list);
    command->add_option("--gate", options->gate, "Only of this gate")->type_name("GATE");
  }
  {
    const auto [command, options] = add(
        "show", "One certificate, or any other record; --json gives the Sigstore bundle", run_show);
    command->add_option("ID", options->id, "Record or its beginning")->required();
  }
  {
    const auto [command, options] =
        add("verify", "Check signature, bundle and evidence of a certificate", run_verify);
    command->add_option("ID", options->id, "Certificate or its beginning")->required();
  }
}

}  // namespace qualify::cli
