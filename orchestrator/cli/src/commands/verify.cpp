#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "../commands.hpp"
#include "../subject.hpp"
#include "qualify/base/files.hpp"
#include "qualify/verify/verify.hpp"

namespace qualify::cli {

namespace {

struct Options {
  bool recompute = false;
  std::vector<std::string> checkpoints;
  bool json = false;
};

Result<Exit> run_verify(Session& session, const Options& options) {
  auto state = open_state_read_only(session);
  if (!state) return tl::unexpected(state.error());
  verify::Options wanted;
  wanted.recompute = options.recompute;
  wanted.threads = std::max(1U, std::thread::hardware_concurrency());
  wanted.scratch = scratch_folder(session);
  auto kept = read_kept_checkpoints(session, options.checkpoints);
  if (!kept) return tl::unexpected(kept.error());
  wanted.remembered = std::move(*kept);
  const auto found = verify::verify_state(*state, wanted);
  if (!found) return tl::unexpected(found.error());
  Json record = {{"records", found->records},         {"certificates", found->certificates},
                 {"checkpoints", found->checkpoints}, {"bundles", found->bundles},
                 {"evidence", found->evidence},       {"recomputed", found->recomputed}};
  const auto count = [](std::uint64_t number, const std::string& what) {
    return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
  };
  std::string whole =
      count(found->records, "record") + " (" + count(found->certificates, "certificate") +
      ") and " + count(found->checkpoints, "checkpoint") + " of the log, " +
      count(found->bundles, "bundle") + ", the evidence of " + count(found->evidence, "run");
  if (options.recompute) {
    whole += "; judged again: " + count(found->recomputed, "verdict") + ", all the same";
  }
  return session.report(std::move(record), found->faults, options.json,
                        state->paths.folder.string(), whole);
}

}  // namespace

void add_verify(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "verify", "Check the whole state: records, log, bundles, evidence; offline, read-only");
  command->add_flag("--recompute", options->recompute,
                    "Also judge every verdict again from its evidence");
  command
      ->add_option("--checkpoint", options->checkpoints,
                   "A checkpoint kept elsewhere, which the log must continue")
      ->type_name("FILE");
  command->add_flag("--json", options->json, "Print one JSON record");
  command->callback([&session, options] { session.finish(run_verify(session, *options)); });
}

}  // namespace qualify::cli
