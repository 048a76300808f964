#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "../commands.hpp"
#include "../explanation.hpp"
#include "../standing_json.hpp"
#include "../subject.hpp"
#include "qualify/standing/standing.hpp"

namespace qualify::cli {

namespace {

struct Options {
  std::string name;
  std::string file;  ///< of gates; empty: qualification.yaml, where there is one
  bool json = false;
};

/// Of a gate that rests on others: where each of them stands, and what shows more.
Branch tree_of(const standing::Standing& standing) {
  Branch root{standing.gate + ": " + standing::name_of(standing.status) + " (gate of kind " +
              policy::name_of(standing.kind) + ")"};
  for (const std::string& reason : standing.reasons) root.add("why: " + reason);
  Branch& parts = root.add("parts");
  for (const standing::Part& part : standing.parts) {
    Branch& branch =
        parts.add(part.name + ", by gate " + part.gate + ": " + standing::name_of(part.status));
    branch.add("why: " + part.why);
    if (!part.certificate.empty()) {
      branch.add("certificate " + part.certificate.substr(0, 12) + ": qualify explain " +
                 part.gate);
    }
    for (const std::string& record : part.records) branch.add("rests on " + record.substr(0, 12));
  }
  root.add(standing.certificate.empty()
               ? "no certificate that counts"
               : "certificate " + standing.certificate.substr(0, 12) + ": qualify cert verify " +
                     standing.certificate.substr(0, 12));
  if (!standing.next.empty()) root.add("next: " + standing.next);
  return root;
}

/// Nothing when no composite gate is called so.
Result<std::optional<standing::Standing>> composite_standing(Session& session, run::State& state,
                                                             const Options& options) {
  const auto qualification = read_gates(session, options.file);
  if (!qualification) {
    if (options.file.empty() && qualification.error().code == Errc::not_found) {
      return std::optional<standing::Standing>();
    }
    return tl::unexpected(qualification.error());
  }
  const policy::Gate* gate = qualification->gate(options.name);
  if (gate == nullptr || !policy::is_composite(gate->kind)) {
    return std::optional<standing::Standing>();
  }
  const auto facts = standing::read_facts(state, *qualification);
  if (!facts) return tl::unexpected(facts.error());
  for (standing::Standing& each :
       standing::standings(*qualification, *facts, session.clock.now())) {
    if (each.gate == options.name) return std::optional(std::move(each));
  }
  return std::optional<standing::Standing>();
}

Result<Exit> run_explain(Session& session, const Options& options) {
  auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  const auto composite = composite_standing(session, *state, options);
  if (!composite) return tl::unexpected(composite.error());
  if (*composite) {
    if (options.json) {
      session.print_json(to_json(**composite));
    } else {
      print_tree(session.out, tree_of(**composite), session.width);
    }
    return Exit::ok;
  }
  const auto found = find_qualification(*state, options.name);
  if (!found) return tl::unexpected(found.error());
  if (!*found) {
    return fail(Errc::not_found, "no gate or qualification '" + options.name + "' has been run",
                session.state_folder().string(), "what there is: qualify status");
  }
  auto all = explain(*state, **found);
  if (!all) return tl::unexpected(all.error());
  if (options.json) {
    session.print_json(std::move(*all));
  } else {
    print_tree(session.out, explanation_tree(*all), session.width);
  }
  return Exit::ok;
}

}  // namespace

void add_explain(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "explain", "What a verdict rests on: comparisons, evidence, runs, jobs, nodes");
  command->add_option("GATE", options->name, "Gate (its latest), or a qualification: repeat-2")
      ->required();
  command->add_option("-f,--file", options->file, "File of gates (qualification.yaml)")
      ->type_name("FILE");
  command->add_flag("--json", options->json, "Print one JSON record");
  command->callback([&session, options] { session.finish(run_explain(session, *options)); });
}

}  // namespace qualify::cli
