#include "judge_composite.hpp"

#include <nlohmann/json.hpp>

#include "qualify/composite/composite.hpp"
#include "qualify/ledger/signer.hpp"
#include "standing_json.hpp"
#include "table.hpp"

namespace qualify::cli {

namespace {

using standing::Status;

void print_outcome(Session& session, const composite::Outcome& outcome) {
  const standing::Standing& standing = outcome.standing;
  session.out << standing.gate << ": " << standing::name_of(standing.status) << "\n\n";
  Table parts({"PART", "GATE", "STATUS", "WHY"});
  for (const standing::Part& part : standing.parts) {
    parts.add({part.name, part.gate, standing::name_of(part.status), part.why});
  }
  parts.print(session.out, session.width);
  session.out << '\n';
  if (!outcome.issued.empty()) {
    session.out << "  certificate " << outcome.issued << '\n';
  } else if (standing.status == Status::pass) {
    session.out << "  certificate " << standing.certificate << " says so already\n";
  } else {
    session.out << "  - ";
    print_wrapped(session.out, standing.reasons.front(), 4, session.width);
  }
  if (!standing.next.empty()) session.out << "Next: " << printable(standing.next) << '\n';
}

Exit exit_for(Status status) {
  if (status == Status::pass) return Exit::ok;
  return status == Status::fail ? Exit::differs : Exit::undecided;
}

}  // namespace

Result<Exit> judge_composite(Session& session, run::State& state, const policy::Gate& gate,
                             const GateOptions& options) {
  const auto qualification = read_gates(session, options.file);
  if (!qualification) return tl::unexpected(qualification.error());
  const auto signer = ledger::load_key(state.paths.signing_key());
  if (!signer) return tl::unexpected(signer.error());
  const auto outcome =
      composite::judge(state, *qualification, gate.name, **signer, session.clock.now());
  if (!outcome) return tl::unexpected(outcome.error());
  if (!outcome->log_not_signed.empty()) {
    session.err << "qualify: the log was not signed: " << outcome->log_not_signed << '\n';
  }
  if (options.json) {
    Json record = to_json(outcome->standing);
    record["issued"] = outcome->issued.empty() ? Json(nullptr) : Json(outcome->issued);
    session.print_json(std::move(record));
  } else {
    print_outcome(session, *outcome);
  }
  return exit_for(outcome->standing.status);
}

}  // namespace qualify::cli
