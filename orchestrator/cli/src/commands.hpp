#pragma once

#include <vector>

#include "session.hpp"

namespace CLI {
class App;
}

namespace qualify::cli {

/// Adds one command to the program; its callback runs it and sets Session::exit.
using AddCommand = void (*)(CLI::App& app, Session& session);

void add_init(CLI::App& app, Session& session);
void add_doctor(CLI::App& app, Session& session);
void add_bundle(CLI::App& app, Session& session);
void add_reservation(CLI::App& app, Session& session);
void add_gate(CLI::App& app, Session& session);
void add_plan(CLI::App& app, Session& session);
void add_run(CLI::App& app, Session& session);
void add_resume(CLI::App& app, Session& session);
void add_cancel(CLI::App& app, Session& session);
void add_history(CLI::App& app, Session& session);
void add_arm(CLI::App& app, Session& session);
void add_disarm(CLI::App& app, Session& session);
void add_daemon(CLI::App& app, Session& session);
void add_status(CLI::App& app, Session& session);
void add_explain(CLI::App& app, Session& session);
void add_decide(CLI::App& app, Session& session);
void add_waive(CLI::App& app, Session& session);
void add_revoke(CLI::App& app, Session& session);
void add_signoff(CLI::App& app, Session& session);
void add_key(CLI::App& app, Session& session);
void add_compare(CLI::App& app, Session& session);
void add_baseline(CLI::App& app, Session& session);
void add_perf(CLI::App& app, Session& session);
void add_cert(CLI::App& app, Session& session);
void add_localize(CLI::App& app, Session& session);
void add_log(CLI::App& app, Session& session);
void add_verify(CLI::App& app, Session& session);
void add_trace(CLI::App& app, Session& session);
void add_job(CLI::App& app, Session& session);

/// Every command, in the order of `qualify --help`.
inline const std::vector<AddCommand> kCommands = {
    add_init,     add_doctor,  add_bundle,  add_reservation, add_gate,     add_plan,
    add_run,      add_resume,  add_cancel,  add_arm,         add_disarm,   add_daemon,
    add_status,   add_explain, add_history, add_compare,     add_localize, add_trace,
    add_baseline, add_perf,    add_decide,  add_waive,       add_revoke,   add_signoff,
    add_key,      add_cert,    add_log,     add_verify,      add_job,
};

}  // namespace qualify::cli
