#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "../commands.hpp"
#include "../narrowing.hpp"
#include "../table.hpp"
#include "../trace_progress.hpp"
#include "qualify/base/files.hpp"
#include "qualify/run/run_traces.hpp"
#include "qualify/traces/localize.hpp"
#include "qualify/traces/manifest.hpp"

namespace qualify::cli {

namespace {

struct Options {
  std::string a;
  std::string b;
  std::vector<std::string> allowed;
  std::string plan;
  std::int64_t from = 0;
  std::int64_t to = 0;
  unsigned jobs = 0;
  bool full = false;
  bool run = false;
  bool json = false;
};

/// First events shown at most; --json has all.
constexpr std::size_t kMostShown = 4;

void paragraph(Session& session, const std::string& text, int indent = 2) {
  session.out << std::string(static_cast<std::size_t>(indent), ' ');
  print_wrapped(session.out, printable(text), indent, session.width - indent);
}

void print_event(Session& session, const traces::FrontierEvent& event, bool first) {
  paragraph(session,
            fmt::format("{}iteration {}, {}",
                        first ? "first divergence: " : "and, not following from it: ",
                        event.place.iteration, traces::describe(event.place, event.groups)),
            0);
  paragraph(session,
            fmt::format("{} {}: {} [{}]", event.ranks.size() == 1 ? "rank" : "ranks",
                        traces::ranks_text(event.ranks), event.why, traces::name_of(event.cause)));
  paragraph(session,
            fmt::format("{}: {} against {}", traces::name_of(event.difference), event.a, event.b));
  paragraph(session,
            "last equal boundary: " + (event.last_equal ? traces::describe(*event.last_equal)
                                                        : "the iteration's beginning"));
  if (event.one_event) paragraph(session, "interval of doubt: this one event");
  paragraph(session, fmt::format("{} of the {} events of rank {} in this iteration differ, in {}",
                                 event.differing, event.events, event.place.rank,
                                 fmt::join(event.chains, ", ")));
}

std::string words(const traces::CapturePlan& plan) {
  std::string text = fmt::format("{} on ranks {}", traces::name_of(plan.level),
                                 plan.ranks.empty() ? "all" : traces::ranks_text(plan.ranks));
  if (plan.first_iteration == plan.last_iteration) {
    text += fmt::format(", iteration {}", plan.first_iteration);
  }
  if (!plan.phases.empty()) text += fmt::format(", {}", fmt::join(plan.phases, " and "));
  if (!plan.sites.empty()) text += fmt::format(", {}…", fmt::join(plan.sites, "…, "));
  return text;
}

void print(Session& session, const traces::Localization& found) {
  session.out << traces::name_of(found.outcome)
              << fmt::format(": {} ranks, {} iterations\n", found.ranks, found.iterations);
  if (!found.frontier.empty()) session.out << '\n';
  for (std::size_t i = 0; i < found.frontier.size(); ++i) {
    if (i == kMostShown) {
      session.out << fmt::format("… and {} more first events (--json has every one)\n",
                                 found.frontier.size() - i);
      break;
    }
    print_event(session, found.frontier[i], i == 0);
  }
  if (!found.followers.empty()) {
    paragraph(session,
              fmt::format("{} other ranks differ and follow from it: {}", found.followers.size(),
                          traces::ranks_text(found.followers)),
              0);
  }
  if (!found.differing_iterations.empty()) {
    paragraph(
        session,
        fmt::format("iterations that differ: {}{}", traces::ranks_text(found.differing_iterations),
                    found.heals ? "; it heals: the last iteration is equal again" : ""),
        0);
  }
  if (found.capture_plan) {
    paragraph(session,
              "capture next: " + words(*found.capture_plan) + " (" + found.capture_reason + ")", 0);
  } else if (!found.capture_reason.empty()) {
    paragraph(session, "capture next: nothing; " + found.capture_reason, 0);
  }
  for (const std::string& reason : found.reasons) {
    session.out << "- ";
    print_wrapped(session.out, printable(reason), 2, session.width - 2);
  }
}

/// A side that is a folder, or a run of the state where there is no such folder.
struct Side {
  std::optional<traces::TraceSet> folder;
  std::optional<run::RunTraces> run;

  [[nodiscard]] const traces::TraceSet& set() const { return folder ? *folder : *run->set(); }
};

Result<NamedRun> named_run(run::State& state, const std::string& name) {
  auto found = find_run(state, name);
  if (!found) return tl::unexpected(found.error());
  if (*found) return std::move(**found);
  return fail(Errc::not_found, "no run of this state is called so", name,
              "a side is a folder of traces, or a run such as repeat-1/a");
}

bool is_there(const Session& session, const std::string& name) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(session.folder / name, ignored));
}

Result<Side> open_side(Session& session, const std::string& name,
                       const traces::TraceSet::Options& how) {
  Side side;
  if (is_there(session, name)) {
    auto opened = traces::TraceSet::open(session.folder / name, how);
    if (!opened) return tl::unexpected(opened.error());
    side.folder = std::move(*opened);
    return side;
  }
  auto state = open_state_read_only(session);
  if (!state && state.error().code == Errc::not_found) {
    return fail(Errc::not_found, "no such folder, and there is no state to look for a run in", name,
                "a side is a folder of traces, or a run such as repeat-1/a");
  }
  if (!state) return tl::unexpected(state.error());
  const auto run = named_run(*state, name);
  if (!run) return tl::unexpected(run.error());
  auto opened = run::RunTraces::open(state->evidence, run->evidence, scratch_folder(session));
  if (!opened) return tl::unexpected(opened.error());
  if (!opened->set()) return tl::unexpected(opened->set().error());
  side.run = std::move(*opened);
  return side;
}

Result<traces::Localization> localize(Session& session, const Options& options,
                                      const traces::LocalizeOptions& how) {
  RankProgress progress(session, "reading");
  const traces::TraceSet::Options reading{options.jobs, progress.reporter()};
  if (is_there(session, options.a) && is_there(session, options.b)) {
    const auto both = traces::TraceSet::open_both(session.folder / options.a,
                                                  session.folder / options.b, reading);
    if (!both) return tl::unexpected(both.error());
    return traces::localize(both->first, both->second, how);
  }
  const auto a = open_side(session, options.a, reading);
  if (!a) return tl::unexpected(a.error());
  const auto b = open_side(session, options.b, reading);
  if (!b) return tl::unexpected(b.error());
  if (a->run && b->run) return run::localize(*a->run, *b->run, how);
  return traces::localize(a->set(), b->set(), how);
}

/// Prints each level as it comes, and with --json all of them at the end.
Result<std::vector<Level>> localize_and_run(Session& session, const Options& options,
                                            const traces::LocalizeOptions& how) {
  auto state = open_state(session);
  if (!state) return tl::unexpected(state.error());
  const auto a = named_run(*state, options.a);
  if (!a) return tl::unexpected(a.error());
  const auto b = named_run(*state, options.b);
  if (!b) return tl::unexpected(b.error());
  bool first = true;
  return narrow(session, *state, *a, *b, how, [&](const Level& level) {
    if (options.json) return;
    session.out << (first ? "" : "\n") << "== " << printable(level.a + " and " + level.b) << '\n';
    print(session, level.found);
    first = false;
  });
}

Json levels_json(const std::vector<Level>& levels) {
  Json list = Json::array();
  for (const Level& level : levels) {
    list.push_back(
        {{"qualification", level.qualification.empty() ? Json(nullptr) : Json(level.qualification)},
         {"a", level.a},
         {"b", level.b},
         {"localization", to_json(level.found)}});
  }
  return list;
}

Result<Exit> run_localize(Session& session, const Options& options) {
  traces::LocalizeOptions how;
  how.jobs = options.jobs;
  how.full = options.full;
  how.allowed = options.allowed;
  if (options.from > 0) how.from_iteration = options.from;
  if (options.to > 0) how.to_iteration = options.to;
  std::vector<Level> levels;
  if (options.run) {
    auto done = localize_and_run(session, options, how);
    if (!done) return tl::unexpected(done.error());
    levels = std::move(*done);
  } else {
    auto found = localize(session, options, how);
    if (!found) return tl::unexpected(found.error());
    levels.push_back({{}, options.a, options.b, std::move(*found)});
    if (!options.json) print(session, levels.back().found);
  }
  const traces::Localization& found = levels.back().found;
  if (!options.plan.empty() && found.capture_plan) {
    const std::string text = to_json(*found.capture_plan).dump(2) + "\n";
    if (auto done = write_file_atomic(session.folder / options.plan, text); !done)
      return tl::unexpected(done.error());
  }
  if (options.json) {
    Json json = to_json(found);
    json["a"] = levels.back().a;
    json["b"] = levels.back().b;
    if (options.run) json["levels"] = levels_json(levels);
    session.print_json(std::move(json));
  }
  switch (found.outcome) {
    case traces::Outcome::equal:
      return Exit::ok;
    case traces::Outcome::differs:
      return Exit::differs;
    case traces::Outcome::inconclusive:
      return Exit::undecided;
  }
  return Exit::undecided;
}

}  // namespace

void add_localize(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("localize", "Find the first event at which the traces of two runs part");
  command
      ->add_option("A", options->a,
                   "Traces of the first run, sealed or not; or a run of this state: repeat-1/a")
      ->required();
  command->add_option("B", options->b, "Those of the second run")->required();
  CLI::Option* run =
      command->add_flag("--run", options->run,
                        "Both are runs of this state: run their arms again with more recorded, "
                        "level by level, until the cause is one event or nothing finer can be");
  command->add_flag("--full", options->full,
                    "Compare every value, not the roots alone; find summaries that lie");
  command
      ->add_option("--allow", options->allowed,
                   "What the manifests may differ in: model, data, seed, code, container or "
                   "environment")
      ->type_name("NAME")
      ->excludes(run)
      ->check(CLI::IsMember({"model", "data", "seed", "code", "container", "environment"}));
  command->add_option("--from-iteration", options->from, "First iteration to compare")
      ->type_name("N")
      ->check(CLI::PositiveNumber.description(""));
  command->add_option("--to-iteration", options->to, "Last iteration to compare")
      ->type_name("N")
      ->check(CLI::PositiveNumber.description(""));
  command
      ->add_option("--write-plan", options->plan,
                   "Write the plan of what to capture next, if there is one")
      ->type_name("FILE");
  command->add_option("--jobs", options->jobs, "Threads (default: one for each processor)")
      ->type_name("N")
      ->check(CLI::PositiveNumber.description(""));
  command->add_flag("--json", options->json, "Print one JSON record");
  command->callback([&session, options] { session.finish(run_localize(session, *options)); });
}

}  // namespace qualify::cli
