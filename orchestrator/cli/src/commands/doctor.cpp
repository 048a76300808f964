#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "../commands.hpp"
#include "../table.hpp"
#include "qualify/base/version.hpp"
#include "qualify/journal/journal.hpp"
#include "qualify/ledger/ledger.hpp"
#include "qualify/run/progress.hpp"
#include "qualify/spec/environment_policy.hpp"

namespace qualify::cli {

namespace {

struct Check {
  std::string name;
  std::string state;  ///< "ok", "none", "fault"
  std::string detail;
};

Check check(const std::string& name, const Result<std::string>& result) {
  if (result) return {name, "ok", *result};
  const bool absent = result.error().code == Errc::unsupported;
  return {name, absent ? "none" : "fault", result.error().describe()};
}

Result<std::string> look_at_journal(run::State& state) {
  const journal::Journal journal(state.database);
  const auto names = journal.qualifications();
  if (!names) return tl::unexpected(names.error());
  for (const std::string& name : *names) {
    const auto events = journal.events(name);
    if (!events) return tl::unexpected(events.error());
    if (auto derived = run::derive(*events); !derived) return tl::unexpected(derived.error());
  }
  return std::to_string(names->size()) + " qualifications";
}

Result<std::string> look_at_ledger(run::State& state) {
  const ledger::Ledger ledger(state.database);
  const auto records = ledger.records();
  if (!records) return tl::unexpected(records.error());
  for (const ledger::Record& record : *records) {
    if (auto whole = ledger::verify_record(record); !whole) return tl::unexpected(whole.error());
  }
  return std::to_string(records->size()) + " signed records, all whole";
}

Result<std::string> look_at_bundles(const run::State& state) {
  const auto bundles = store::list(state.bundles);
  if (!bundles) return tl::unexpected(bundles.error());
  return std::to_string(bundles->size()) + " bundles";
}

Result<std::string> look_at_scheduler(const Session& session, const std::string& reservation) {
  const auto scheduler = open_scheduler(session, reservation);
  if (!scheduler) return tl::unexpected(scheduler.error());
  return (*scheduler)->describe();
}

/// Whether what this shell sets agrees with what the bundle requires.
Result<std::string> look_at_environment(const Session& session, const run::State& state,
                                        const std::string& reference) {
  const auto digest = store::resolve(state.bundles, reference);
  if (!digest) return tl::unexpected(digest.error());
  const auto bundle = store::load(state.bundles, *digest);
  if (!bundle) return tl::unexpected(bundle.error());
  auto faults =
      spec::inherited_faults(bundle->required_environment, session.environment, "this shell");
  if (!faults.empty()) {
    Error first = std::move(faults.front());
    first.others.assign(faults.begin() + 1, faults.end());
    return Unexpected(std::move(first));
  }
  std::string text =
      std::to_string(bundle->required_environment.size()) + " required values, none disagrees";
  std::string ignored;
  for (const std::string& name : spec::inherited_numeric(session.environment)) {
    ignored += (ignored.empty() ? "" : ", ") + name;
  }
  if (!ignored.empty()) text += "; set here, but reaching no workload: " + ignored;
  return text;
}

struct Options {
  std::string bundle;
  bool json = false;
};

Result<Exit> run_doctor(Session& session, const Options& options) {
  std::vector<Check> checks;
  checks.push_back({"qualify", "ok", version()});
  auto state = run::open_state_read_only(session.state_folder());
  checks.push_back(check("state", state ? Result<std::string>(state->paths.folder.string())
                                        : Result<std::string>(tl::unexpected(state.error()))));
  if (state) {
    checks.push_back(
        check("signing key", ledger::load_key(state->paths.signing_key()).map([](const auto& key) {
          return key->public_key().key_id().substr(0, 12);
        })));
    checks.push_back(check("bundles", look_at_bundles(*state)));
    checks.push_back(check("journal", look_at_journal(*state)));
    checks.push_back(check("ledger", look_at_ledger(*state)));
    if (!options.bundle.empty()) {
      checks.push_back(check("environment", look_at_environment(session, *state, options.bundle)));
    }
  }
  checks.push_back(check("local machine", look_at_scheduler(session, "")));
  checks.push_back(check("slurm", look_at_scheduler(session, "any")));

  bool good = true;
  for (const Check& entry : checks) {
    // A machine without a running Slurm is whole; the reason is shown.
    good = good && (entry.state != "fault" || entry.name == "slurm");
  }
  if (options.json) {
    Json list = Json::array();
    for (const Check& entry : checks) {
      list.push_back({{"name", entry.name}, {"state", entry.state}, {"detail", entry.detail}});
    }
    session.print_json({{"ok", good}, {"checks", std::move(list)}});
  } else {
    Table table({"CHECK", "STATE", "DETAIL"});
    for (const Check& entry : checks) table.add({entry.name, entry.state, entry.detail});
    table.print(session.out, session.width);
  }
  return good ? Exit::ok : Exit::unavailable;
}

}  // namespace

void add_doctor(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("doctor", "Check this machine and the state folder");
  command
      ->add_option("--bundle", options->bundle,
                   "Check too that this shell's environment agrees with what it requires")
      ->type_name("BUNDLE");
  command->add_flag("--json", options->json, "Print one JSON record");
  command->callback([&session, options] { session.finish(run_doctor(session, *options)); });
}

}  // namespace qualify::cli
