#pragma once

#include <string>

namespace CLI {
class App;
}

namespace qualify::cli {

/// What `plan` and `run` are told: the same words for the same gate.
struct GateOptions {
  std::string gate;
  std::string bundle;
  std::string reservation;  ///< empty: this machine
  std::string file;         ///< of gates; empty: qualification.yaml
  bool json = false;
};

/// `options` outlives `command`.
void add_gate_options(CLI::App& command, GateOptions& options);

}  // namespace qualify::cli
