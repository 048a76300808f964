#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "../commands.hpp"
#include "../signals.hpp"
#include "../signing.hpp"
#include "../standing_json.hpp"
#include "../table.hpp"
#include "qualify/daemon/arming.hpp"
#include "qualify/run/progress.hpp"
#include "qualify/standing/standing.hpp"

namespace qualify::cli {

namespace {

struct Options {
  std::string gate;
  std::string file;
  bool watch = false;
  bool json = false;
};

std::string status_of(const run::QualificationState& state) {
  if (state.verdict) return policy::name_of(*state.verdict);
  if (!state.cancelled.empty()) return "open";
  for (const run::RunState& run : state.runs) {
    if (!run.attempts.empty() && !run.attempts.back().ended) return "running";
  }
  return state.preflight_faults.empty() ? "open" : "blocked";
}

std::string detail_of(const run::QualificationState& state) {
  if (state.verdict) return state.summary;
  if (!state.cancelled.empty()) return "given up by " + state.cancelled;
  if (!state.preflight_faults.empty()) return state.preflight_faults.front();
  std::size_t done = 0;
  for (const run::RunState& run : state.runs) {
    done += static_cast<std::size_t>(!run.attempts.empty() && run.attempts.back().ended);
  }
  return std::to_string(done) + " of " + std::to_string(state.runs.size()) + " runs ended";
}

Json to_json(const run::QualificationState& state) {
  Json runs = Json::array();
  for (const run::RunState& run : state.runs) {
    Json attempts = Json::array();
    for (const run::Attempt& attempt : run.attempts) {
      attempts.push_back(
          {{"number", attempt.number},
           {"job_id", attempt.job_id.empty() ? Json(nullptr) : Json(attempt.job_id)},
           {"ended", attempt.ended},
           {"complete", attempt.complete},
           {"failure", attempt.failure.empty() ? Json(nullptr) : Json(attempt.failure)},
           {"failure_class", run::name_of(attempt.failure_class)},
           {"node_seconds", attempt.node_seconds},
           {"gpu_seconds", attempt.gpu_seconds},
           {"nodes", attempt.nodes}});
    }
    runs.push_back({{"id", run.run.id},
                    {"arm", run.run.arm},
                    {"attempts", std::move(attempts)},
                    {"evidence", run.evidence ? Json(run.evidence->str()) : Json(nullptr)}});
  }
  Json costs = Json::array();
  for (const run::Cost& cost : run::cost_by_arm({&state, 1})) {
    costs.push_back({{"arm", cost.arm},
                     {"attempts", cost.attempts},
                     {"node_seconds", cost.node_seconds},
                     {"gpu_seconds", cost.gpu_seconds}});
  }
  return {{"qualification", state.name},
          {"gate", state.plan.gate},
          {"kind", policy::name_of(state.plan.kind)},
          {"status", status_of(state)},
          {"bundle", state.plan.bundle.str()},
          {"policy", state.plan.policy.str()},
          {"plan", state.plan_digest.str()},
          {"scheduler", state.plan.scheduler},
          {"reservation", state.plan.reservation},
          {"started", format_time(state.started)},
          {"judged", state.judged_at ? Json(format_time(*state.judged_at)) : Json(nullptr)},
          {"level", state.level ? Json(*state.level) : Json(nullptr)},
          {"reasons", state.reasons},
          {"certificate", state.certificate.empty() ? Json(nullptr) : Json(state.certificate)},
          {"cost", std::move(costs)},
          {"runs", std::move(runs)}};
}

/// What one gate has cost, over all of its qualifications: a line for each arm.
void print_cost(std::ostream& out, int width, const std::vector<run::QualificationState>& found) {
  std::vector<run::Cost> all = run::cost_by_arm(found);
  std::erase_if(all, [](const run::Cost& cost) { return cost.attempts == 0; });
  if (all.empty()) return;
  out << '\n';
  Table table({"COST OF ARM", "ATTEMPTS", "NODE-SECONDS", "GPU-SECONDS"});
  for (const run::Cost& cost : all) {
    table.add({cost.arm, std::to_string(cost.attempts), fmt::format("{:.0f}", cost.node_seconds),
               fmt::format("{:.0f}", cost.gpu_seconds)});
  }
  table.print(out, width);
}

Json to_json(const daemon::Armed& armed) {
  const auto next = standing::next_of(armed);
  Json missed = nullptr;
  if (armed.missed) {
    missed = {{"first", format_time(armed.missed->first)},
              {"last", format_time(armed.missed->last)},
              {"count", armed.missed->count},
              {"why", armed.missed->why}};
  }
  return {{"gate", armed.gate.name},
          {"bundle", armed.file.empty() ? Json(armed.bundle.str()) : Json(nullptr)},
          {"reservation", armed.file.empty() ? Json(armed.reservation) : Json(nullptr)},
          {"file", armed.file.empty() ? Json(nullptr) : Json(armed.file)},
          {"by", armed.by},
          {"since", format_time(armed.since)},
          {"waiting_for", armed.waiting_for},
          {"schedule", armed.recurrent() ? Json(armed.schedule) : Json(nullptr)},
          {"time_zone", armed.recurrent() ? Json(armed.time_zone) : Json(nullptr)},
          {"due", armed.due ? Json(format_time(*armed.due)) : Json(nullptr)},
          {"next", next ? Json(format_time(*next)) : Json(nullptr)},
          {"missed", std::move(missed)}};
}

/// The latest qualification of every gate; all of one gate when it is named.
Result<std::vector<run::QualificationState>> load(run::State& state, const std::string& gate) {
  const journal::Journal journal(state.database);
  const auto names = gate.empty() ? journal.latest_qualifications() : journal.qualifications(gate);
  if (!names) return tl::unexpected(names.error());
  std::vector<run::QualificationState> found;
  for (const std::string& name : *names) {
    auto derived = run::state_of(journal, name);
    if (!derived) return tl::unexpected(derived.error());
    found.push_back(std::move(*derived));
  }
  return found;
}

/// The file of gates: the one that is named, the one here, or the one beside the state; none is no
/// error where none was named.
Result<policy::Qualification> declared_gates(const Session& session, const Options& options) {
  if (!options.file.empty()) return read_gates(session, options.file);
  for (const auto& folder : {session.folder, session.state_folder().parent_path()}) {
    auto read = policy::read_qualification(folder / "qualification.yaml");
    if (read || read.error().code != Errc::not_found) return read;
  }
  return policy::Qualification{};
}

/// What one look at the database finds.
struct Look {
  standing::Facts facts;
  std::vector<standing::Standing> gates;
  std::vector<standing::ReleaseStanding> releases;
  std::vector<run::QualificationState>
      qualifications;  ///< of one gate, or where they are asked for
};

Result<Look> look(Session& session, const Options& options, bool qualifications) {
  auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  const auto qualification = declared_gates(session, options);
  if (!qualification) return tl::unexpected(qualification.error());
  auto facts = standing::read_facts(*state, *qualification);
  if (!facts) return tl::unexpected(facts.error());
  Look found{std::move(*facts), {}, {}, {}};
  found.gates = standing::standings(*qualification, found.facts, session.clock.now());
  found.releases = standing::release_standings(*qualification, found.facts, found.gates);
  if (!options.gate.empty()) {
    std::erase_if(found.gates, [&](const auto& each) { return each.gate != options.gate; });
    found.releases.clear();
    if (found.gates.empty()) {
      std::string known;
      for (const policy::Gate& gate : qualification->gates) {
        known += (known.empty() ? "" : ", ") + gate.name;
      }
      if (!known.empty()) {
        return fail(Errc::not_found, "no gate '" + options.gate + "'", qualification->file.string(),
                    "gates there: " + known);
      }
    }
  }
  if (qualifications) {
    auto loaded = load(*state, options.gate);
    if (!loaded) return tl::unexpected(loaded.error());
    found.qualifications = std::move(*loaded);
  }
  return found;
}

void print_next(std::ostream& out, const std::vector<std::string>& steps) {
  std::set<std::string> seen;
  for (const std::string& step : steps) {
    if (step.empty() || !seen.insert(step).second) continue;
    if (seen.size() == 1) out << "\nNext:\n";
    out << "  " << printable(step) << '\n';
  }
}

std::string bundle_of(const standing::Standing& gate) {
  return gate.bundle ? gate.bundle->brief() : std::string("-");
}

/// One line a gate, one a release.
void print_all(std::ostream& out, int width, const Look& found) {
  if (found.gates.empty()) {
    out << "No gate has been run yet, and none is declared in qualification.yaml.\n"
           "Next: qualify run GATE --bundle BUNDLE\n";
    return;
  }
  std::vector<std::string> next;
  Table table({"GATE", "STATUS", "BUNDLE", "WHY"});
  for (const standing::Standing& gate : found.gates) {
    std::string why = gate.reasons.front();
    if (!standing::is_closed(gate.status)) {
      for (const std::string& smaller : gate.supporting) {
        why += "; supporting evidence, no proof: " + smaller;
      }
    }
    table.add({gate.gate, standing::name_of(gate.status), bundle_of(gate), why});
    next.push_back(gate.next);
  }
  table.print(out, width);
  if (!found.releases.empty()) {
    out << '\n';
    Table releases({"RELEASE", "STATUS", "WHY"});
    for (const standing::ReleaseStanding& release : found.releases) {
      releases.add({release.release, standing::name_of(release.status), release.reasons.front()});
      if (release.can_sign) next.push_back(release.next);
    }
    releases.print(out, width);
  }
  print_next(out, next);
}

/// All that is known of one.
void print_gate(std::ostream& out, int width, const Look& found) {
  if (found.gates.empty()) {
    out << "The gate has not been run yet.\nNext: qualify run GATE --bundle BUNDLE\n";
    return;
  }
  const standing::Standing& gate = found.gates.front();
  Table table({gate.gate, standing::name_of(gate.status)});
  for (const std::string& reason : gate.reasons) table.add({"", reason});
  if (gate.bundle) {
    table.add({"bundle",
               (gate.bundle_name.empty() ? "" : gate.bundle_name + " ") + gate.bundle->brief()});
  }
  if (!gate.certificate.empty()) table.add({"certificate", gate.certificate.substr(0, 12)});
  for (const std::string& record : gate.records) table.add({"rests on", record.substr(0, 12)});
  if (gate.since) table.add({"since", format_time(*gate.since).substr(0, 19) + "Z"});
  if (gate.until) table.add({"until", format_time(*gate.until).substr(0, 19) + "Z"});
  for (const std::string& smaller : gate.supporting) {
    table.add({"supporting", smaller + ": evidence, no proof"});
  }
  table.print(out, width);
  if (!gate.parts.empty()) {
    out << '\n';
    Table parts({"PART", "GATE", "STATUS", "WHY"});
    for (const standing::Part& part : gate.parts) {
      parts.add({part.name, part.gate, standing::name_of(part.status), part.why});
    }
    parts.print(out, width);
  }
  if (!found.qualifications.empty()) {
    out << '\n';
    Table runs({"RUN OF GATE", "VERDICT", "BUNDLE", "WHY"});
    for (const auto& entry : found.qualifications) {
      runs.add({entry.name, status_of(entry), entry.plan.bundle.brief(), detail_of(entry)});
    }
    runs.print(out, width);
    print_cost(out, width, found.qualifications);
  }
  print_next(out, {gate.next});
}

void print(std::ostream& out, int width, const Options& options, const Look& found) {
  if (options.gate.empty()) {
    print_all(out, width, found);
  } else {
    print_gate(out, width, found);
  }
}

void say_faults(const Session& session, const Look& found) {
  for (const Error& fault : found.facts.faults) {
    session.err << "qualify: " << printable_lines(fault.describe()) << '\n';
  }
}

Result<Exit> print_as_json(Session& session, const Options& options, const Look& found) {
  Json list = Json::array();
  for (const auto& entry : found.qualifications) list.push_back(to_json(entry));
  std::vector<daemon::Armed> armed;
  for (const auto& [name, gate] : found.facts.gates) {
    if (!gate.armed || (!options.gate.empty() && name != options.gate)) continue;
    armed.push_back(*gate.armed);
  }
  std::sort(armed.begin(), armed.end(),
            [](const daemon::Armed& a, const daemon::Armed& b) { return a.since < b.since; });
  Json waiting = Json::array();
  for (const daemon::Armed& one : armed) waiting.push_back(to_json(one));
  Json gates = Json::array();
  for (const auto& each : found.gates) gates.push_back(cli::to_json(each));
  Json releases = Json::array();
  for (const auto& each : found.releases) releases.push_back(cli::to_json(each));
  session.print_json({{"gates", std::move(gates)},
                      {"releases", std::move(releases)},
                      {"qualifications", std::move(list)},
                      {"armed", std::move(waiting)}});
  return Exit::ok;
}

constexpr auto kRedraw = std::chrono::seconds(2);

/// Redraws in place until Ctrl-C, which is how one leaves it: the last picture stays.
Result<Exit> watch(Session& session, const Options& options) {
  if (!session.out_is_terminal) {
    return fail(Errc::usage, "--watch redraws on a terminal, and the output goes elsewhere", {},
                "leave --watch out, or use: watch qualify status");
  }
  catch_stop_signals();
  session.out << "\x1b[?25l\x1b[2J";
  Result<Exit> ended = Exit::ok;
  while (stop_requested() == run::Stop::none) {
    const auto found = look(session, options, !options.gate.empty());
    if (!found) {
      ended = tl::unexpected(found.error());
      break;
    }
    const TerminalSize size = session.terminal_size();
    std::ostringstream picture;
    print(picture, size.columns, options, *found);
    picture << '\n'
            << format_time(session.clock.now()).substr(0, 19) << "Z, every " << kRedraw.count()
            << " s; Ctrl-C ends this\n";
    // Line by line, so that nothing of the picture before is left; what does not fit is cut.
    std::istringstream lines(picture.str());
    session.out << "\x1b[H";
    int row = 1;
    for (std::string line; row < size.rows && std::getline(lines, line); ++row) {
      session.out << line << "\x1b[K\n";
    }
    session.out << "\x1b[J" << std::flush;
    session.clock.sleep_for(kRedraw);
  }
  session.out << "\x1b[?25h" << std::flush;
  return ended;
}

Result<Exit> run_status(Session& session, const Options& options) {
  if (options.watch) return watch(session, options);
  const auto found = look(session, options, options.json || !options.gate.empty());
  if (!found) return tl::unexpected(found.error());
  say_faults(session, *found);
  if (options.json) return print_as_json(session, options, *found);
  print(session.out, session.width, options, *found);
  return Exit::ok;
}

}  // namespace

void add_status(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("status", "Where every gate stands, and what to do next");
  command->add_option("GATE", options->gate, "Only this gate, with its earlier runs");
  command
      ->add_option("--file", options->file,
                   "Gates, people and releases (default: qualification.yaml, here or beside the "
                   "state)")
      ->type_name("FILE");
  command->add_flag("--watch", options->watch, "Redraw every 2 seconds, until Ctrl-C");
  command->add_flag("--json", options->json, "Print one JSON record");
  command->callback([&session, options] { session.finish(run_status(session, *options)); });
}

}  // namespace qualify::cli
