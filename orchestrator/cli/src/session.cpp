#include "session.hpp"

#include <nlohmann/json.hpp>

#include "qualify/scheduler/local.hpp"
#include "qualify/scheduler/module.hpp"
#include "table.hpp"

namespace qualify::cli {

namespace {

namespace fs = std::filesystem;

/// The first of the places where the Slurm module may lie.
Result<fs::path> slurm_module(const Session& session) {
  const std::string file = "qualify_scheduler_slurm.so";
  std::vector<fs::path> candidates;
  if (const std::string folder = session.variable("QUALIFY_MODULES"); !folder.empty()) {
    candidates.push_back(fs::path(folder) / file);
  }
  const fs::path beside = session.executable.parent_path();
  candidates.push_back(beside / ".." / QUALIFY_LIBRARY_FOLDER / "qualify" / file);
  candidates.push_back(beside / ".." / ".." / "schedulers" / "slurm" / file);  // a build folder
  std::string tried;
  for (const fs::path& candidate : candidates) {
    if (fs::exists(candidate)) return candidate;
    tried += (tried.empty() ? "" : ", ") + candidate.lexically_normal().string();
  }
  return fail(Errc::unsupported, "this qualify has no Slurm backend", "looked for " + tried,
              "install libslurm-dev and build again, or set QUALIFY_MODULES");
}

}  // namespace

std::string Session::variable(const std::string& name) const {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

fs::path Session::state_folder() const {
  if (!state_option.empty()) return folder / state_option;
  if (const std::string set = variable("QUALIFY_STATE"); !set.empty()) return folder / set;
  for (fs::path at = folder;; at = at.parent_path()) {
    const run::StatePaths paths{at / ".qualify"};
    // A state that lost its database is one still: its transcript says so.
    if (fs::exists(paths.database()) || fs::exists(paths.transcript())) return paths.folder;
    if (at == at.parent_path()) return folder / ".qualify";
  }
}

void Session::finish(const Result<Exit>& result) {
  if (result) {
    exit = *result;
    return;
  }
  err << "qualify: " << printable_lines(result.error().describe()) << '\n';
  exit = exit_for(result.error().code);
}

Exit Session::report(Json record, const std::vector<Error>& faults, bool json,
                     const std::string& name, const std::string& whole) {
  if (json) {
    Json list = Json::array();
    for (const Error& fault : faults) {
      list.push_back(
          {{"code", name_of(fault.code)}, {"message", fault.message}, {"context", fault.context}});
    }
    record["ok"] = faults.empty();
    record["faults"] = std::move(list);
    print_json(std::move(record));
  } else if (faults.empty()) {
    out << "ok " << name << '\n';
    if (!whole.empty()) {
      out << "   ";
      print_wrapped(out, whole, 3, width);
    }
  } else {
    for (const Error& fault : faults) {
      err << "qualify: " << printable_lines(fault.describe()) << '\n';
    }
  }
  return faults.empty() ? Exit::ok : Exit::integrity;
}

void Session::print_json(Json record) {
  if (!record.contains("schema_version")) record["schema_version"] = 1;
  out << record.dump(2, ' ', true, Json::error_handler_t::replace) << '\n';
}

namespace {

Result<run::State> say_notes(const Session& session, Result<run::State> state) {
  if (!state) return state;
  for (const std::string& note : state->database.notes()) {
    session.err << "qualify: " << note << '\n';
  }
  return state;
}

}  // namespace

Result<run::State> open_state(const Session& session) {
  return say_notes(session, run::open_state(session.state_folder()));
}

Result<run::State> open_state_read_only(const Session& session) {
  return say_notes(session, run::open_state_read_only(session.state_folder()));
}

Result<std::vector<std::string>> read_kept_checkpoints(const Session& session,
                                                       const std::vector<std::string>& files) {
  std::vector<std::string> notes;
  for (const std::string& file : files) {
    auto note = read_file(session.folder / file);
    if (!note) return tl::unexpected(note.error());
    notes.push_back(std::move(*note));
  }
  return notes;
}

Result<policy::Qualification> read_gates(const Session& session, const std::string& file) {
  const fs::path path = session.folder / (file.empty() ? "qualification.yaml" : file);
  auto qualification = policy::read_qualification(path);
  if (!qualification && qualification.error().code == Errc::not_found) {
    return fail(Errc::not_found, "no file of gates", path.string(),
                "write one (docs/formats/qualification.md), or name it with --file");
  }
  return qualification;
}

Result<policy::Gate> find_gate(const Session& session, const std::string& file,
                               const std::string& name) {
  const auto qualification = read_gates(session, file);
  if (!qualification) return tl::unexpected(qualification.error());
  if (const policy::Gate* gate = qualification->gate(name)) return *gate;
  std::string known;
  for (const policy::Gate& gate : qualification->gates) {
    known += (known.empty() ? "" : ", ") + gate.name;
  }
  return fail(Errc::not_found, "no gate '" + name + "'", qualification->file.string(),
              "gates there: " + known);
}

Result<std::unique_ptr<scheduler::Scheduler>> open_scheduler(const Session& session,
                                                             const std::string& reservation) {
  if (reservation.empty() || reservation == "local") {
    scheduler::LocalOptions options;
    options.folder = fs::absolute(session.state_folder() / "local");
    // One lock for the machine, whoever uses it; tests of one machine give each its own.
    const std::string lock = session.variable("QUALIFY_MACHINE_LOCK");
    options.machine_lock = lock.empty() ? "/tmp/qualify-machine.lock" : lock;
    options.host = session.host;
    options.user = session.user;
    return scheduler::make_local(std::move(options), session.clock);
  }
  return open_slurm(session);
}

Result<std::unique_ptr<scheduler::Scheduler>> open_slurm(const Session& session) {
  const auto module = slurm_module(session);
  if (!module) return tl::unexpected(module.error());
  return scheduler::load_module(*module);
}

Result<std::string> find_slurm_module(const Session& session) {
  const auto module = slurm_module(session);
  if (!module) return tl::unexpected(module.error());
  return scheduler::describe_module(*module);
}

}  // namespace qualify::cli
