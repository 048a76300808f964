#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "../commands.hpp"
#include "../table.hpp"
#include "qualify/base/version.hpp"
#include "qualify/journal/journal.hpp"
#include "qualify/ledger/ledger.hpp"
#include "qualify/rebuild/rebuild.hpp"
#include "qualify/spec/environment_policy.hpp"
#include "qualify/store/bundle.hpp"

namespace qualify::cli {

namespace {

struct Check {
  std::string name;
  std::string state;  ///< "ok", "none", "fault"
  std::string detail;
  bool damage = false;  ///< something is not what was stored
};

Check check(const std::string& name, const Result<std::string>& result) {
  if (result) return {name, "ok", *result};
  const bool absent = result.error().code == Errc::unsupported;
  return {name, absent ? "none" : "fault", result.error().describe(),
          result.error().code == Errc::integrity};
}

/// Database and transcript, read from end to end.
Result<std::string> look_at_database(run::State& state) {
  auto faults = rebuild::inspect(state.paths.folder);
  if (!faults.empty()) {
    faults.front().hint = "rebuild it from what lies beside it with: qualify doctor --rebuild";
    return fail_all(std::move(faults));
  }
  const auto names = journal::Journal(state.database).qualifications();
  if (!names) return tl::unexpected(names.error());
  const auto records = ledger::Ledger(state.database).records();
  if (!records) return tl::unexpected(records.error());
  return fmt::format("{} qualifications, {} signed records, all whole{}", names->size(),
                     records->size(),
                     std::filesystem::exists(state.paths.transcript())
                         ? ""
                         : "; no transcript yet: the next command that writes makes it");
}

/// Copies from before migrations, and what rebuildings put aside: for a person to move elsewhere.
std::string copies_beside(const run::State& state) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(state.paths.folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.find(".before-") != std::string::npos || name.find(".damaged-") != std::string::npos) {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, ", "));
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
  for (Error& missing :
       spec::missing_passed(bundle->passed_environment, session.environment, "this shell")) {
    faults.push_back(std::move(missing));
  }
  if (!faults.empty()) {
    return fail_all(std::move(faults));
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
  bool rebuild = false;
  bool json = false;
};

Result<Exit> run_doctor(Session& session, const Options& options) {
  std::vector<Check> checks;
  checks.push_back({"qualify", "ok", version()});
  auto state = open_state_read_only(session);
  checks.push_back(check("state", state ? Result<std::string>(state->paths.folder.string())
                                        : Result<std::string>(tl::unexpected(state.error()))));
  if (state) {
    checks.push_back(
        check("signing key", ledger::load_key(state->paths.signing_key()).map([](const auto& key) {
          return key->public_key().key_id().substr(0, 12);
        })));
    checks.push_back(check("bundles", look_at_bundles(*state)));
    checks.push_back(check("database", look_at_database(*state)));
    if (const std::string copies = copies_beside(*state); !copies.empty()) {
      checks.push_back({"older copies", "ok", copies});
    }
    if (!options.bundle.empty()) {
      checks.push_back(check("environment", look_at_environment(session, *state, options.bundle)));
    }
  }
  checks.push_back(check("local machine", look_at_scheduler(session, "")));
  checks.push_back(check("slurm", look_at_scheduler(session, "any")));

  bool good = true;
  bool damage = false;
  for (const Check& entry : checks) {
    // A machine without a running Slurm is whole; the reason is shown.
    good = good && (entry.state != "fault" || entry.name == "slurm");
    damage = damage || entry.damage;
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
  if (damage) return Exit::integrity;
  return good ? Exit::ok : Exit::unavailable;
}

void print_list(Session& session, const std::string& title, const std::vector<std::string>& items) {
  if (items.empty()) return;
  session.out << title << ":\n";
  for (const std::string& item : items) {
    session.out << "  - ";
    print_wrapped(session.out, printable(item), 4, session.width);
  }
}

/// What could not be had back is a fault of integrity for whoever calls, however much was.
Result<Exit> run_rebuild(Session& session, bool json) {
  const auto folder = session.state_folder();
  const auto done = rebuild::rebuild(folder, session.clock.now(), session.user);
  if (!done) return tl::unexpected(done.error());
  const bool whole = done->lost.empty() && done->faults.empty();
  std::vector<std::string> faults;
  for (const Error& error : done->faults) faults.push_back(error.describe());
  std::vector<std::string> kept;
  for (const auto& file : done->kept) kept.push_back(file.string());
  if (json) {
    session.print_json({{"needed", done->needed},
                        {"ok", whole},
                        {"why", done->why},
                        {"rows", done->rows},
                        {"salvaged", done->salvaged},
                        {"remade", done->remade},
                        {"lost", done->lost},
                        {"faults", faults},
                        {"kept", kept}});
    return whole ? Exit::ok : Exit::integrity;
  }
  if (!done->needed) {
    session.out << "The database and its transcript are whole; nothing was touched.\n";
    return Exit::ok;
  }
  print_list(session, "What was wrong", done->why);
  std::string counts;
  for (const auto& [table, count] : done->rows) {
    counts += fmt::format("{}{} of '{}'", counts.empty() ? "" : ", ", count, table);
  }
  session.out << "Rebuilt ";
  print_wrapped(session.out, (run::StatePaths{folder}.database().string()) + ": rows " + counts, 8,
                session.width);
  print_list(session, "Had from the damaged file", done->salvaged);
  print_list(session, "Made again", done->remade);
  print_list(session, "Lost", done->lost);
  print_list(session, "Faults that stay", faults);
  print_list(session, "Kept as it was", kept);
  session.out << (whole ? "Nothing was lost.\n" : "Not everything could be had back.\n")
              << "Next: qualify status\n";
  return whole ? Exit::ok : Exit::integrity;
}

}  // namespace

void add_doctor(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("doctor", "Check this machine and the state folder");
  command
      ->add_option("--bundle", options->bundle,
                   "Check too that this shell's environment agrees with what it requires")
      ->type_name("BUNDLE");
  command->add_flag("--rebuild", options->rebuild,
                    "Make a damaged or missing database anew from what lies beside it");
  command->add_flag("--json", options->json, "Print one JSON record");
  command->callback([&session, options] {
    session.finish(options->rebuild ? run_rebuild(session, options->json)
                                    : run_doctor(session, *options));
  });
}

}  // namespace qualify::cli
