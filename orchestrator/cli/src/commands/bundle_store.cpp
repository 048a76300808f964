#include "bundle_store.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "../table.hpp"
#include "qualify/journal/journal.hpp"
#include "qualify/ledger/ledger.hpp"
#include "qualify/run/state.hpp"
#include "qualify/store/bundle.hpp"
#include "qualify/store/diff.hpp"
#include "qualify/store/garbage.hpp"
#include "qualify/store/transfer.hpp"

namespace qualify::cli {

namespace {

struct Options {
  std::string bundle;
  std::string other;
  std::string path;
  std::vector<std::string> drop;
  std::string grace = "1d";
  bool remove = false;
  bool json = false;
};

Result<store::Bundle> find_bundle(const store::BlobStore& store, const std::string& reference) {
  const auto digest = store::resolve(store, reference);
  if (!digest) return tl::unexpected(digest.error());
  return store::load(store, *digest);
}

Result<Exit> run_list(Session& session, const Options& options) {
  const auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  const auto bundles = store::list(state->bundles);
  if (!bundles) return tl::unexpected(bundles.error());
  if (options.json) {
    Json list = Json::array();
    for (const store::Bundle& bundle : *bundles) {
      list.push_back({{"digest", bundle.digest.str()},
                      {"name", bundle.name},
                      {"recipe", spec::name_of(bundle.recipe)},
                      {"model", bundle.model},
                      {"dirty", bundle.dirty}});
    }
    session.print_json({{"bundles", std::move(list)}});
    return Exit::ok;
  }
  if (bundles->empty()) {
    session.out << "No bundle has been sealed yet.\n";
    return Exit::ok;
  }
  Table table({"BUNDLE", "NAME", "RECIPE", "NODES", "NOTE"});
  for (const store::Bundle& bundle : *bundles) {
    table.add({bundle.digest.brief(), bundle.name, spec::name_of(bundle.recipe),
               std::to_string(bundle.topology.nodes), bundle.dirty ? "dirty: no certificate" : ""});
  }
  table.print(session.out, session.width);
  return Exit::ok;
}

Result<Exit> run_diff(Session& session, const Options& options) {
  const auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  const auto a = find_bundle(state->bundles, options.bundle);
  if (!a) return tl::unexpected(a.error());
  const auto b = find_bundle(state->bundles, options.other);
  if (!b) return tl::unexpected(b.error());
  const auto differences = store::diff(state->bundles, *a, *b);
  if (!differences) return tl::unexpected(differences.error());
  if (options.json) {
    Json list = Json::array();
    for (const store::Difference& one : *differences) {
      list.push_back({{"input", one.input}, {"what", one.what}, {"details", one.details}});
    }
    session.print_json({{"a", a->digest.str()},
                        {"b", b->digest.str()},
                        {"equal", a->digest == b->digest},
                        {"differences", std::move(list)}});
  } else if (differences->empty()) {
    session.out << "equal: both are " << a->digest.str() << '\n';
  } else {
    for (const store::Difference& one : *differences) {
      session.out << printable(one.input + ": " + one.what) << '\n';
      for (const std::string& detail : one.details)
        session.out << "  " << printable(detail) << '\n';
    }
  }
  return differences->empty() ? Exit::ok : Exit::differs;
}

Result<Exit> run_export(Session& session, const Options& options) {
  const auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  const auto digest = store::resolve(state->bundles, options.bundle);
  if (!digest) return tl::unexpected(digest.error());
  const fs::path file = session.folder / options.path;
  if (auto done = store::export_bundle(state->bundles, *digest, file); !done) {
    return tl::unexpected(done.error());
  }
  session.out << "Exported " << digest->str() << " to " << printable(file.string()) << '\n';
  return Exit::ok;
}

Result<Exit> run_import(Session& session, const Options& options) {
  auto state = open_state(session);
  if (!state) return tl::unexpected(state.error());
  const auto digests = store::import_bundles(state->bundles, session.folder / options.path);
  if (!digests) return tl::unexpected(digests.error());
  for (const Digest& digest : *digests) session.out << "Imported " << digest.str() << '\n';
  return Exit::ok;
}

Result<Exit> run_materialize(Session& session, const Options& options) {
  const auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  const auto bundle = find_bundle(state->bundles, options.bundle);
  if (!bundle) return tl::unexpected(bundle.error());
  const fs::path folder = session.folder / options.path;
  if (auto done = store::materialize(state->bundles, *bundle, folder); !done) {
    return tl::unexpected(done.error());
  }
  session.out << "Laid out " << bundle->digest.brief() << " in " << printable(folder.string())
              << '\n';
  if (bundle->container.content.size > 0) {
    session.out << "container " << state->bundles.path_of(bundle->container.content.digest).string()
                << '\n';
  }
  return Exit::ok;
}

/// Every 64-digit hexadecimal word in `text`: whatever may be a digest is kept.
void add_digests(const std::string& text, std::set<Digest>& digests) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find_first_of(kDigits, at);
    if (begin == std::string::npos) return;
    const std::size_t end = std::min(text.find_first_not_of(kDigits, begin), text.size());
    if (end - begin == 2 * Digest::kBytes) {
      if (const auto digest = Digest::parse(text.substr(begin, end - begin))) {
        digests.insert(*digest);
      }
    }
    at = end;
  }
}

/// What the journal and the ledger name.
Result<std::set<Digest>> digests_in_use(run::State& state) {
  std::set<Digest> digests;
  const auto events = journal::Journal(state.database).events();
  if (!events) return tl::unexpected(events.error());
  for (const journal::Event& event : *events) add_digests(event.payload, digests);
  Result<void> good;
  const auto walked = ledger::Ledger(state.database)
                          .for_each([&](std::int64_t, const Result<ledger::Record>& record) {
                            if (!record) {
                              good = tl::unexpected(record.error());
                              return;
                            }
                            digests.insert(record->bundle);
                            add_digests(record->envelope.payload, digests);
                          });
  if (!walked) return tl::unexpected(walked.error());
  if (!good) return tl::unexpected(good.error());
  return digests;
}

Result<Exit> run_gc(Session& session, const Options& options) {
  auto state = open_state(session);
  if (!state) return tl::unexpected(state.error());
  const auto grace = parse_duration(options.grace);
  if (!grace) return tl::unexpected(grace.error());
  // No run may begin with a bundle between the look at what is in use and its removal.
  std::optional<FileLock> no_runs;
  if (options.remove && !options.drop.empty()) {
    auto held =
        FileLock::acquire_or(state->paths.lock(), {Errc::busy,
                                                   "a gate is being run with this state",
                                                   state->paths.folder.string(),
                                                   "try again when it has ended, or without --drop",
                                                   {}});
    if (!held) return tl::unexpected(held.error());
    no_runs = std::move(*held);
  }
  auto keep = digests_in_use(*state);
  if (!keep) return tl::unexpected(keep.error());
  store::CollectOptions collect;
  collect.grace = *grace;
  collect.keep = std::move(*keep);
  collect.remove = options.remove;
  for (const std::string& reference : options.drop) {
    const auto digest = store::resolve(state->bundles, reference);
    if (!digest) return tl::unexpected(digest.error());
    collect.drop.push_back(*digest);
  }
  const auto garbage = store::collect_garbage(state->bundles, collect, session.clock);
  if (!garbage) return tl::unexpected(garbage.error());
  if (options.json) {
    Json files = Json::array();
    for (const fs::path& file : garbage->files) files.push_back(file.string());
    Json dropped = Json::array();
    for (const Digest& digest : collect.drop) dropped.push_back(digest.str());
    session.print_json({{"removed", options.remove},
                        {"bytes", garbage->bytes},
                        {"files", std::move(files)},
                        {"dropped", std::move(dropped)}});
    return Exit::ok;
  }
  for (std::size_t i = 0; i < collect.drop.size(); ++i) {
    session.out << (options.remove ? "Took out " : "Would take out ") << options.drop[i] << ", "
                << collect.drop[i].str() << '\n';
  }
  session.out << (options.remove ? "Removed " : "Would remove ") << garbage->files.size()
              << " files, " << garbage->bytes << " bytes\n";
  if (!options.remove && !(garbage->files.empty() && collect.drop.empty())) {
    session.out << "Nothing was changed; --delete does it.\n";
  }
  return Exit::ok;
}

}  // namespace

void add_bundle_store(CLI::App& group, Session& session) {
  const auto add = [&](const char* name, const char* text,
                       Result<Exit> (*action)(Session&, const Options&), bool json) {
    auto options = std::make_shared<Options>();
    CLI::App* command = group.add_subcommand(name, text);
    if (json) command->add_flag("--json", options->json, "Print one JSON record");
    command->callback([&session, options, action] { session.finish(action(session, *options)); });
    return std::pair(command, options);
  };
  constexpr char kBundle[] = "Digest, its beginning, or name";
  add("list", "List sealed bundles, oldest seal first", run_list, true);
  {
    const auto [command, options] =
        add("diff", "Say which inputs differ between two bundles, and how", run_diff, true);
    command->add_option("A", options->bundle, kBundle)->required();
    command->add_option("B", options->other, kBundle)->required();
  }
  {
    const auto [command, options] =
        add("export", "Write a bundle as one file, an OCI archive", run_export, false);
    command->add_option("BUNDLE", options->bundle, kBundle)->required();
    command->add_option("FILE", options->path, "File to write; must not exist")->required();
  }
  {
    const auto [command, options] =
        add("import", "Take in bundles after verifying all of them", run_import, false);
    command->add_option("SOURCE", options->path, "OCI archive, or folder with an OCI layout")
        ->required();
  }
  {
    const auto [command, options] =
        add("materialize", "Lay a bundle out read-only, as a job sees it", run_materialize, false);
    command->add_option("BUNDLE", options->bundle, kBundle)->required();
    command->add_option("FOLDER", options->path, "Folder to make; must not exist")->required();
  }
  {
    const auto [command, options] =
        add("gc", "Find, and with --delete remove, what nothing names any more", run_gc, true);
    command->add_flag("--delete", options->remove, "Remove it; without this nothing is changed");
    command->add_option("--grace", options->grace, "Leave alone what is younger (default 1d)")
        ->type_name("DURATION");
    command
        ->add_option("--drop", options->drop,
                     "Take this bundle out too; refused when a run or record names it")
        ->type_name("BUNDLE");
  }
}

}  // namespace qualify::cli
