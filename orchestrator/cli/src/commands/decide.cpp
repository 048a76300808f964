#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "../commands.hpp"
#include "../signing.hpp"
#include "../table.hpp"
#include "qualify/certify/records.hpp"

namespace qualify::cli {

namespace {

using certify::Decision;

struct Options {
  SigningOptions signing;
  std::string gate;
  bool accept = false;
  bool reject = false;
  std::string convergence;
  bool json = false;
};

constexpr const char* kConvergenceType = "application/vnd.qualify.convergence.v1";

/// The result that is decided on, if it is one on which people may decide.
Result<const standing::GateFacts*> open_to_people(const Signing& signing, const std::string& gate,
                                                  bool convergence) {
  const standing::Standing* const standing = standing::find(signing.standings, gate);
  if (standing == nullptr || signing.qualification.gate(gate) == nullptr) {
    return fail(Errc::not_found, "no gate '" + gate + "'", signing.qualification.file.string());
  }
  const auto found = signing.facts.gates.find(gate);
  if (found == signing.facts.gates.end() || !found->second.finished) {
    return fail(Errc::refused, "there is no result to decide on", "gate " + gate, standing->next);
  }
  const run::QualificationState& judged = *found->second.finished;
  const bool open = convergence ? *judged.verdict == policy::Verdict::fail &&
                                      policy::changes_baseline(judged.reasons)
                                : *judged.verdict == policy::Verdict::needs_decision;
  if (!open) {
    return fail(Errc::refused,
                judged.name + " is " + name_of(*judged.verdict) + ": " +
                    (convergence ? "only a repeatable result that changes its baseline is answered "
                                   "by a convergence qualification"
                                 : "only what needs a decision can be accepted or rejected"),
                "gate " + gate, standing->next);
  }
  if (standing->status == standing::Status::stale) {
    return fail(Errc::refused, standing->reasons.front(), "gate " + gate, standing->next);
  }
  if (!convergence && !found->second.interval) {
    return fail(Errc::integrity, "the interval that was measured cannot be read", judged.name,
                "qualify verify");
  }
  return &found->second;
}

std::string bundle_name(const Signing& signing, const Digest& bundle) {
  for (const auto& known : signing.facts.bundles) {
    if (known.digest == bundle) return known.name;
  }
  return bundle.brief();
}

Result<Exit> run_decide(Session& session, const Options& options) {
  const bool convergence = !options.convergence.empty();
  if (static_cast<int>(options.accept) + static_cast<int>(options.reject) +
          static_cast<int>(convergence) !=
      1) {
    return fail(Errc::usage, "say one of --accept, --reject and --convergence FILE");
  }
  auto signing = begin_signing(session, options.signing, policy::role::kDecide);
  if (!signing) return tl::unexpected(signing.error());
  const auto open = open_to_people(*signing, options.gate, convergence);
  if (!open) return tl::unexpected(open.error());
  const run::QualificationState& judged = *(*open)->finished;

  Decision decision;
  decision.what = convergence      ? Decision::What::convergence
                  : options.accept ? Decision::What::accept
                                   : Decision::What::reject;
  decision.gate = options.gate;
  decision.qualification = judged.name;
  decision.bundle = judged.plan.bundle;
  decision.bundle_name = bundle_name(*signing, judged.plan.bundle);
  decision.policy = judged.plan.policy;
  decision.judgement = *judged.judgement;
  decision.person = signing->person;
  decision.reason = options.signing.reason;
  if (convergence) {
    const auto file =
        signing->state.evidence.add_file(session.folder / options.convergence, kConvergenceType);
    if (!file) return tl::unexpected(file.error());
    decision.convergence = file->digest;
  } else {
    decision.interval = (*open)->interval;
  }
  const auto record = append_signed(session, *signing, ledger::RecordKind::decision, options.gate,
                                    decision.bundle, statement_of(decision));
  if (!record) return tl::unexpected(record.error());

  const auto facts = standing::read_facts(signing->state, signing->qualification);
  if (!facts) return tl::unexpected(facts.error());
  const auto all = standing::standings(signing->qualification, *facts, session.clock.now());
  const standing::Standing now = *standing::find(all, options.gate);
  if (options.json) {
    session.print_json({{"record", record->id},
                        {"kind", "decision"},
                        {"decision", name_of(decision.what)},
                        {"person", signing->person},
                        {"gate", options.gate},
                        {"qualification", judged.name},
                        {"status", standing::name_of(now.status)}});
    return Exit::ok;
  }
  Table table({"decision", record->id.substr(0, 12) + " by " + signing->person});
  table.add({"of", judged.name + ", bundle " + decision.bundle_name + " (" +
                       decision.bundle.brief() + ")"});
  if (decision.interval) {
    table.add({"measured", fmt::format("{:.4f} to {:.4f} of the step time",
                                       decision.interval->lower, decision.interval->upper)});
  }
  if (decision.convergence) table.add({"attached", decision.convergence->str()});
  table.add(
      {"gate is now", std::string(standing::name_of(now.status)) + ": " + now.reasons.front()});
  table.print(session.out, session.width);
  return Exit::ok;
}

}  // namespace

void add_decide(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("decide", "Sign a decision on what the numbers leave to people");
  command->add_option("GATE", options->gate, "Whose latest result is decided on")->required();
  command->add_flag("--accept", options->accept, "Accept the cost that was measured");
  command->add_flag("--reject", options->reject, "Do not");
  command
      ->add_option("--convergence", options->convergence,
                   "Vouch for a changed baseline with this convergence qualification")
      ->type_name("FILE");
  add_reason_option(*command, options->signing);
  add_signing_options(*command, options->signing);
  command->add_flag("--json", options->json, "Print one JSON record");
  command->callback([&session, options] { session.finish(run_decide(session, *options)); });
}

}  // namespace qualify::cli
