#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "qualify/base/clock.hpp"
#include "qualify/base/error.hpp"
#include "qualify/base/json.hpp"
#include "qualify/policy/gate.hpp"
#include "qualify/run/state.hpp"
#include "qualify/scheduler/scheduler.hpp"

namespace qualify::cli {

struct TerminalSize {
  int columns = 80;
  int rows = 24;
};

/// What one invocation has of the world. main() fills it; commands take it, and nothing else
/// touches streams, environment or the clock.
struct Session {
  std::ostream& out;  ///< results
  std::ostream& err;  ///< diagnostics
  Clock& clock;
  std::map<std::string, std::string> environment;
  std::filesystem::path executable;  ///< this program, absolute
  std::filesystem::path folder;      ///< current folder
  std::string host;
  std::string user;
  bool err_is_terminal = false;  ///< progress is shown only then
  int width = 80;                ///< columns of the terminal

  std::string state_option;  ///< --state
  Exit exit = Exit::ok;      ///< what main() returns

  bool out_is_terminal = false;
  /// Of the terminal now: it may be resized while one watches.
  std::function<TerminalSize()> terminal_size = [] { return TerminalSize{}; };

  /// --state, else QUALIFY_STATE, else the nearest .qualify of this folder and those above, else
  /// .qualify here.
  [[nodiscard]] std::filesystem::path state_folder() const;
  [[nodiscard]] std::string variable(const std::string& name) const;  ///< empty when not set

  /// Ends a command: prints an error, keeps the exit code.
  void finish(const Result<Exit>& result);
  /// Ends a verification: `record` with "ok" and "faults" as JSON, or each fault on `err`, or
  /// "ok NAME" and what was found whole on `out` when there is none.
  [[nodiscard]] Exit report(Json record, const std::vector<Error>& faults, bool json,
                            const std::string& name, const std::string& whole = {});
  /// Prints one JSON root record; schema_version is put in if it is not there.
  void print_json(Json record);
};

/// The state folder of this session; what a person should know about how its database was opened (a
/// migration, a file system without shared memory) is said on `err`. Errors: run::open_state's.
[[nodiscard]] Result<run::State> open_state(const Session& session);
[[nodiscard]] Result<run::State> open_state_read_only(const Session& session);

/// Checkpoints that were kept elsewhere, from their files. Errors: not_found, io.
[[nodiscard]] Result<std::vector<std::string>> read_kept_checkpoints(
    const Session& session, const std::vector<std::string>& files);

/// The file of gates that is named, empty: qualification.yaml of this folder.
/// Errors: not_found, invalid_input.
[[nodiscard]] Result<policy::Qualification> read_gates(const Session& session,
                                                       const std::string& file);

/// The gate of a file, or an error that lists those there are. Errors: not_found, invalid_input.
[[nodiscard]] Result<policy::Gate> find_gate(const Session& session, const std::string& file,
                                             const std::string& name);

/// The backend for a reservation: this machine when the name is empty, Slurm otherwise.
/// Errors: unavailable, unsupported (no Slurm module, with where it was looked for).
[[nodiscard]] Result<std::unique_ptr<scheduler::Scheduler>> open_scheduler(
    const Session& session, const std::string& reservation);

/// Slurm, whatever the reservation. Errors: unavailable, unsupported.
[[nodiscard]] Result<std::unique_ptr<scheduler::Scheduler>> open_slurm(const Session& session);

/// What the Slurm module that would be loaded says of itself.
/// Errors: unsupported (none there), those of loading it.
[[nodiscard]] Result<std::string> find_slurm_module(const Session& session);

}  // namespace qualify::cli
