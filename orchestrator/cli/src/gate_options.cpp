#include "gate_options.hpp"

#include <CLI/CLI.hpp>

namespace qualify::cli {

void add_gate_options(CLI::App& command, GateOptions& options) {
  command.add_option("GATE", options.gate, "Gate of qualification.yaml")->required();
  command.add_option("-b,--bundle", options.bundle, "Digest, its beginning, or name")
      ->type_name("BUNDLE")
      ->required();
  command
      .add_option("-r,--reservation", options.reservation,
                  "Slurm reservation (default: this machine)")
      ->type_name("NAME");
  command.add_option("-f,--file", options.file, "File of gates (qualification.yaml)")
      ->type_name("FILE");
  command.add_flag("--json", options.json, "Print one JSON record");
}

}  // namespace qualify::cli
