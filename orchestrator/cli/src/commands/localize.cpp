#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "../commands.hpp"
#include "../table.hpp"
#include "../trace_progress.hpp"
#include "qualify/base/files.hpp"
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
  bool json = false;
};

/// Groups and causes named at most; --json has all.
constexpr std::size_t kMostShown = 4;

/// "backward, decoder.layers.12.mixer output, reduce-scatter #3 of dp.5, microbatch 1"
std::string words(const traces::Place& place, const std::vector<std::string>& groups) {
  std::string text = place.phase.empty() ? "" : place.phase + ", ";
  text += place.site;
  if (!place.role.empty()) text += " " + place.role;
  if (!place.op.empty()) {
    text += ", " + place.op;
    if (place.group_seq >= 0) text += fmt::format(" #{}", place.group_seq);
    if (groups.size() > kMostShown) {
      text += fmt::format(" of {} groups ({}, …)", groups.size(), groups.front());
    } else if (!groups.empty()) {
      text += " of " + fmt::format("{}", fmt::join(groups, ", "));
    }
  }
  if (place.peer >= 0)
    text += fmt::format(" {} rank {}", place.role == "recv" ? "from" : "to", place.peer);
  if (place.microbatch >= 0) text += fmt::format(", microbatch {}", place.microbatch);
  if (place.vpp_chunk >= 0) text += fmt::format(", chunk {}", place.vpp_chunk);
  if (place.occurrence > 0) text += fmt::format(", occurrence {}", place.occurrence);
  return text;
}

std::string words(const traces::Place& place) {
  return words(place, place.group.empty() ? std::vector<std::string>() : std::vector{place.group});
}

void paragraph(Session& session, const std::string& text, int indent = 2) {
  session.out << std::string(static_cast<std::size_t>(indent), ' ');
  print_wrapped(session.out, printable(text), indent, session.width - indent);
}

void print_event(Session& session, const traces::FrontierEvent& event, bool first) {
  paragraph(session,
            fmt::format("{}iteration {}, {}",
                        first ? "first divergence: " : "and, not following from it: ",
                        event.place.iteration, words(event.place, event.groups)),
            0);
  paragraph(session,
            fmt::format("{} {}: {} [{}]", event.ranks.size() == 1 ? "rank" : "ranks",
                        traces::ranks_text(event.ranks), event.why, traces::name_of(event.cause)));
  paragraph(session,
            fmt::format("{}: {} against {}", traces::name_of(event.difference), event.a, event.b));
  paragraph(session, "last equal boundary: " + (event.last_equal ? words(*event.last_equal)
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

Result<Exit> run_localize(Session& session, const Options& options) {
  RankProgress progress(session, "reading");
  const traces::TraceSet::Options how{options.jobs, progress.reporter()};
  const auto a = traces::TraceSet::open(session.folder / options.a, how);
  if (!a) return tl::unexpected(a.error());
  const auto b = traces::TraceSet::open(session.folder / options.b, how);
  if (!b) return tl::unexpected(b.error());
  traces::LocalizeOptions localize;
  localize.jobs = options.jobs;
  localize.full = options.full;
  localize.allowed = options.allowed;
  if (options.from > 0) localize.from_iteration = options.from;
  if (options.to > 0) localize.to_iteration = options.to;
  const auto found = traces::localize(*a, *b, localize);
  if (!found) return tl::unexpected(found.error());
  if (!options.plan.empty() && found->capture_plan) {
    const std::string text = to_json(*found->capture_plan).dump(2) + "\n";
    if (auto done = write_file_atomic(session.folder / options.plan, text); !done)
      return tl::unexpected(done.error());
  }
  if (options.json) {
    Json json = to_json(*found);
    json["a"] = options.a;
    json["b"] = options.b;
    session.print_json(std::move(json));
  } else {
    print(session, *found);
  }
  switch (found->outcome) {
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
  command->add_option("A", options->a, "Traces of the first run, sealed or not")
      ->type_name("DIR")
      ->required();
  command->add_option("B", options->b, "Traces of the second run")->type_name("DIR")->required();
  command->add_flag("--full", options->full,
                    "Compare every value, not the roots alone; find summaries that lie");
  command
      ->add_option("--allow", options->allowed,
                   "What the manifests may differ in: model, data, seed, code, container or "
                   "environment")
      ->type_name("NAME")
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
