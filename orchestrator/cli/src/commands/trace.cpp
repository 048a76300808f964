#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "../commands.hpp"
#include "../table.hpp"
#include "../trace_progress.hpp"
#include "qualify/base/parallel.hpp"
#include "qualify/traces/manifest.hpp"
#include "qualify/traces/seal.hpp"
#include "qualify/traces/sealed_file.hpp"
#include "qualify/traces/timeline.hpp"
#include "qualify/traces/trace_set.hpp"

namespace qualify::cli {

namespace {

struct Options {
  std::string folder;
  std::string output;
  std::int64_t window = 0;
  bool running = false;
  std::string ranks;
  std::string with;
  std::int64_t from = 0;
  std::int64_t to = 0;
  unsigned jobs = 0;
  bool check = false;
  bool json = false;
};

Json to_json(const traces::Faults& faults) {
  Json list = Json::array();
  for (const auto& fault : faults) {
    list.push_back({{"code", fault.code}, {"message", fault.message}, {"where", fault.where}});
  }
  return list;
}

std::string hex(const traces::Hash& hash) {
  return to_hex(hash);
}

void print_faults(Session& session, const traces::Faults& faults) {
  constexpr std::size_t kMost = 10;
  for (std::size_t i = 0; i < std::min(faults.size(), kMost); ++i) {
    session.err << printable(fmt::format("{}: {} ({})", faults[i].where, faults[i].message,
                                         faults[i].code))
                << '\n';
  }
  if (faults.size() > kMost) {
    session.err << fmt::format("… and {} more (--json has every one)\n", faults.size() - kMost);
  }
}

std::string megabytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

Result<Exit> run_seal(Session& session, const Options& options) {
  traces::SealOptions how;
  std::string from = options.folder;
  while (from.size() > 1 && from.back() == '/') from.pop_back();
  how.to = session.folder / (options.output.empty() ? from + ".sealed" : options.output);
  how.window = options.window;
  how.still_running = options.running;
  how.jobs = options.jobs;
  auto ranks = traces::parse_ranks(options.ranks);
  if (!ranks) return tl::unexpected(ranks.error());
  how.ranks = std::move(*ranks);
  RankProgress progress(session, "sealing");
  how.progress = progress.reporter();
  const auto sealed = traces::seal(session.folder / from, how);
  if (!sealed) return tl::unexpected(sealed.error());
  const bool over = sealed->roots.has_value();
  if (options.json) {
    session.print_json({{"schema_version", 1},
                        {"folder", how.to.string()},
                        {"complete", over && sealed->roots->complete},
                        {"root", over ? Json(hex(run_root(*sealed->roots))) : Json(nullptr)},
                        {"ranks", sealed->ranks},
                        {"rows", sealed->rows},
                        {"files_written", sealed->files_written},
                        {"files_kept", sealed->files_kept},
                        {"source_bytes", sealed->source_bytes},
                        {"sealed_bytes", sealed->sealed_bytes},
                        {"faults", to_json(sealed->faults)}});
  } else {
    session.out << fmt::format(
        "{} ranks, {} rows: {} files written, {} kept, {} from {} read now\n", sealed->ranks,
        sealed->rows, sealed->files_written, sealed->files_kept, megabytes(sealed->sealed_bytes),
        megabytes(sealed->source_bytes));
    if (!over) {
      session.out << "not over: seal again without --running and --ranks when training has ended\n";
    } else {
      session.out << (sealed->roots->complete ? "complete" : "incomplete: it will match nothing")
                  << ", root " << hex(run_root(*sealed->roots)) << '\n';
    }
    print_faults(session, sealed->faults);
  }
  return sealed->faults.empty() ? Exit::ok : Exit::undecided;
}

/// Every leaf of a sealed trace hashed again, and the roots held against them.
std::vector<Error> check(const traces::TraceSet& set, unsigned jobs) {
  std::vector<std::optional<Error>> found(set.roots().ranks.size());
  for_each_index(found.size(), jobs, [&](std::size_t rank) {
    if (const auto summary = set.summary(rank); !summary) found[rank] = summary.error();
    for (const auto& path : set.files(rank)) {
      if (found[rank]) return;
      const auto file = traces::SealedFile::open(path);
      if (!file) {
        found[rank] = file.error();
      } else if (auto good = file->check(); !good) {
        found[rank] = good.error();
      }
    }
  });
  std::vector<Error> faults;
  for (auto& error : found) {
    if (error) faults.push_back(std::move(*error));
  }
  return faults;
}

/// Rows of each phase and class of collectives on the first rank, all iterations.
std::map<std::string, std::uint64_t> rows_by_node(const traces::RankSummary& summary) {
  std::map<std::string, std::uint64_t> rows;
  for (const auto& iteration : summary.iterations) {
    for (const auto& node : iteration.nodes) {
      const char* kind = node.kind == traces::NodeKind::phase ? "phase " : "collectives ";
      rows[kind + summary.names[node.name]] += node.rows;
    }
  }
  return rows;
}

Result<Exit> run_info(Session& session, const Options& options) {
  RankProgress progress(session, "reading");
  const auto set =
      traces::TraceSet::open(session.folder / options.folder, {options.jobs, progress.reporter()});
  if (!set) return tl::unexpected(set.error());
  const auto faults = set->faults();
  if (!faults) return tl::unexpected(faults.error());
  const auto manifest = set->manifest();
  if (!manifest) return tl::unexpected(manifest.error());
  const auto schema = set->schema();
  if (!schema) return tl::unexpected(schema.error());
  const auto summary = set->summary(0);
  if (!summary) return tl::unexpected(summary.error());
  std::vector<Error> lies;
  if (options.check && set->sealed()) lies = check(*set, options.jobs);
  const auto& roots = set->roots();
  const auto rows = rows_by_node(*summary);
  if (options.json) {
    Json wrong = Json::array();
    for (const Error& lie : lies) wrong.push_back(lie.describe());
    session.print_json({{"schema_version", 1},
                        {"sealed", set->sealed()},
                        {"complete", roots.complete},
                        {"schema", *schema},
                        {"root", hex(run_root(roots))},
                        {"ranks", traces::ranks_text(roots.ranks)},
                        {"iterations", traces::ranks_text(roots.iterations)},
                        {"window", roots.window},
                        {"manifest", manifest->present ? to_json(*manifest) : Json(nullptr)},
                        {"rows_of_first_rank", rows},
                        {"checked", options.check && set->sealed()},
                        {"lies", wrong},
                        {"faults", to_json(*faults)}});
  } else {
    session.out << fmt::format("{} {}, {}\n", set->sealed() ? "sealed" : "raw", *schema,
                               roots.complete ? "complete" : "incomplete: it matches nothing");
    session.out << "root        " << hex(run_root(roots)) << '\n';
    session.out << "ranks       " << traces::ranks_text(roots.ranks) << '\n';
    session.out << "iterations  " << traces::ranks_text(roots.iterations) << '\n';
    if (manifest->present) {
      for (const auto& [name, value] : manifest->inputs) {
        session.out << printable(fmt::format("{:<12}{}", name, value)) << '\n';
      }
      if (!manifest->capture_level.empty())
        session.out << "captured    " << printable(manifest->capture_level) << '\n';
      session.out << "groups      " << manifest->groups.size() << '\n';
    } else {
      session.out << "manifest    none: what was run is not said\n";
    }
    Table table({"FIRST RANK", "ROWS"});
    for (const auto& [name, count] : rows) table.add({name, std::to_string(count)});
    session.out << '\n';
    table.print(session.out, session.width);
    print_faults(session, *faults);
    for (const Error& lie : lies) session.err << lie.describe() << '\n';
    if (options.check && set->sealed() && lies.empty()) {
      session.out << "\nevery row hashed again: the summaries and roots are theirs\n";
    }
  }
  if (!lies.empty()) return Exit::integrity;
  return roots.complete ? Exit::ok : Exit::undecided;
}

/// Everything, a whole run's too, goes through in pieces; the file replaces an earlier one at the
/// end.
Result<Exit> run_export(Session& session, const Options& options) {
  RankProgress progress(session, "reading");
  const traces::TraceSet::Options how{options.jobs, progress.reporter()};
  const auto a = traces::TraceSet::open(session.folder / options.folder, how);
  if (!a) return tl::unexpected(a.error());
  std::optional<traces::TraceSet> b;
  std::optional<traces::Localization> found;
  if (!options.with.empty()) {
    auto opened = traces::TraceSet::open(session.folder / options.with, how);
    if (!opened) return tl::unexpected(opened.error());
    b = std::move(*opened);
    traces::LocalizeOptions localize;
    localize.jobs = options.jobs;
    auto localized = traces::localize(*a, *b, localize);
    if (!localized) return tl::unexpected(localized.error());
    found = std::move(*localized);
  }
  auto ranks = traces::parse_ranks(options.ranks);
  if (!ranks) return tl::unexpected(ranks.error());
  traces::TimelineOptions window;
  window.ranks = std::move(*ranks);
  if (options.from > 0) window.from_iteration = options.from;
  if (options.to > 0) window.to_iteration = options.to;
  const std::filesystem::path to = session.folder / options.output;
  const std::filesystem::path temporary = to.string() + ".part";
  Result<std::uint64_t> events = 0;
  {
    std::ofstream file(temporary, std::ios::binary);
    events =
        traces::write_timeline(*a, b ? &*b : nullptr, found ? &*found : nullptr, window,
                               [&](std::string_view text) -> Result<void> {
                                 file.write(text.data(), static_cast<std::streamsize>(text.size()));
                                 if (file) return {};
                                 return fail(Errc::io, "cannot write", temporary.string());
                               });
    file.close();
    if (events && !file) events = fail(Errc::io, "cannot write", temporary.string());
  }
  std::error_code error;
  if (events) std::filesystem::rename(temporary, to, error);
  if (!events || error) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    if (!events) return tl::unexpected(events.error());
    return fail_errno(error.value(), "cannot write", to.string());
  }
  if (options.json) {
    session.print_json({{"schema_version", 1}, {"file", to.string()}, {"events", *events}});
  } else {
    session.out << fmt::format("{} events in {}: open it in Perfetto or chrome://tracing\n",
                               *events, printable(options.output));
  }
  return Exit::ok;
}

}  // namespace

void add_trace(CLI::App& app, Session& session) {
  CLI::App* group = app.add_subcommand("trace", "Seal, describe and show the traces of a run");
  group->require_subcommand(1);
  const auto add = [&](const char* name, const char* text,
                       Result<Exit> (*action)(Session&, const Options&)) {
    auto options = std::make_shared<Options>();
    CLI::App* command = group->add_subcommand(name, text);
    command->add_option("DIR", options->folder, "Traces of a run")->type_name("DIR")->required();
    command->add_option("--jobs", options->jobs, "Threads (default: one for each processor)")
        ->type_name("N")
        ->check(CLI::PositiveNumber.description(""));
    command->add_flag("--json", options->json, "Print one JSON record");
    command->callback([&session, options, action] { session.finish(action(session, *options)); });
    return std::pair(command, options);
  };
  {
    const auto [command, options] =
        add("seal", "JSON Lines of every rank to Arrow files with a Merkle summary", run_seal);
    command->add_option("--output", options->output, "Folder (default: DIR.sealed)")
        ->type_name("DIR");
    CLI::Option* window = command
                              ->add_option("--window", options->window,
                                           "Iterations a file (default: one file a rank)")
                              ->type_name("N")
                              ->check(CLI::PositiveNumber.description(""));
    command
        ->add_flag("--running", options->running,
                   "Training goes on: seal what is whole, leave the rest for the next time")
        ->needs(window);
    command->add_option("--ranks", options->ranks, "Only these, such as 0-7: each node its own")
        ->type_name("RANKS");
  }
  {
    const auto [command, options] =
        add("info", "What a trace holds, sealed or not, and whether it is complete", run_info);
    command->add_flag("--check", options->check,
                      "Hash every row again and hold summaries and roots against them");
  }
  {
    const auto [command, options] =
        add("export", "A timeline for Perfetto, of one run or of two side by side", run_export);
    command->add_option("--with", options->with, "A second run; the first difference is marked")
        ->type_name("DIR");
    command->add_option("--ranks", options->ranks, "Only these, such as 0-7")->type_name("RANKS");
    command->add_option("--from-iteration", options->from, "First iteration")
        ->type_name("N")
        ->check(CLI::PositiveNumber.description(""));
    command->add_option("--to-iteration", options->to, "Last iteration")
        ->type_name("N")
        ->check(CLI::PositiveNumber.description(""));
    command->add_option("--output", options->output, "The timeline, as JSON")
        ->type_name("FILE")
        ->required();
  }
}

}  // namespace qualify::cli
