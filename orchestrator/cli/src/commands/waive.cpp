#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "../commands.hpp"
#include "../signing.hpp"
#include "../table.hpp"
#include "qualify/certify/records.hpp"
#include "qualify/store/bundle.hpp"

namespace qualify::cli {

namespace {

struct Options {
  SigningOptions signing;
  std::string gate;
  std::string until;
  std::string bundle;
  bool json = false;
};

Result<Time> read_until(const std::string& text, Time now) {
  if (const auto duration = parse_duration(text)) return now + *duration;
  auto time = parse_time(text);
  if (!time) {
    return fail(Errc::usage, "not an end: '" + text + "'", "--until",
                "a time in UTC such as 2026-12-24T00:00:00Z, or how long from now, such as 14d");
  }
  if (*time <= now) return fail(Errc::usage, "it has ended already: " + text, "--until");
  return time;
}

Result<Exit> run_waive(Session& session, const Options& options) {
  const auto until = read_until(options.until, session.clock.now());
  if (!until) return tl::unexpected(until.error());
  auto signing = begin_signing(session, options.signing, policy::role::kWaive);
  if (!signing) return tl::unexpected(signing.error());
  const policy::Gate* gate = signing->qualification.gate(options.gate);
  if (gate == nullptr) {
    return fail(Errc::not_found, "no gate '" + options.gate + "'",
                signing->qualification.file.string());
  }
  certify::Waiver waiver{gate->name,      policy_digest(*gate),  {}, {}, *until,
                         signing->person, options.signing.reason};
  if (!options.bundle.empty()) {
    const auto digest = store::resolve(signing->state.bundles, options.bundle);
    if (!digest) return tl::unexpected(digest.error());
    const auto bundle = store::load(signing->state.bundles, *digest);
    if (!bundle) return tl::unexpected(bundle.error());
    waiver.bundle = *digest;
    waiver.bundle_name = bundle->name;
  }
  const auto record = append_signed(session, *signing, ledger::RecordKind::waiver, gate->name,
                                    waiver.bundle.value_or(Digest()), statement_of(waiver));
  if (!record) return tl::unexpected(record.error());
  if (options.json) {
    session.print_json({{"record", record->id},
                        {"kind", "waiver"},
                        {"person", signing->person},
                        {"gate", gate->name},
                        {"bundle", waiver.bundle ? Json(waiver.bundle->str()) : Json(nullptr)},
                        {"until", format_time(*until)}});
    return Exit::ok;
  }
  Table table({"waiver", record->id.substr(0, 12) + " by " + signing->person});
  table.add({"of", "gate " + gate->name + " as it is declared now, for " +
                       (waiver.bundle
                            ? "bundle " + waiver.bundle_name + " (" + waiver.bundle->brief() + ")"
                            : std::string("any bundle"))});
  table.add({"until", format_time(*until).substr(0, 19) + "Z"});
  const policy::Role* role = signing->qualification.role(policy::role::kWaive);
  if (role->needed > 1) {
    table.add({"needed", std::to_string(role->needed) + " people who waive until the same time"});
  }
  table.print(session.out, session.width);
  return Exit::ok;
}

}  // namespace

void add_waive(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("waive", "Sign that a gate need not pass for some time");
  command->add_option("GATE", options->gate, "In the version that is declared now")->required();
  command->add_option("--until", options->until, "Its end: a time in UTC, or how long from now")
      ->type_name("TIME")
      ->required();
  command->add_option("--bundle", options->bundle, "Only for this bundle")->type_name("BUNDLE");
  add_reason_option(*command, options->signing);
  add_signing_options(*command, options->signing);
  command->add_flag("--json", options->json, "Print one JSON record");
  command->callback([&session, options] { session.finish(run_waive(session, *options)); });
}

}  // namespace qualify::cli
