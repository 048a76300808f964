#pragma once

#include "session.hpp"

namespace CLI {
class App;
}

namespace qualify::cli {

/// Gives the program its options and every command. `session` outlives `app`.
void describe_program(CLI::App& app, Session& session);

}  // namespace qualify::cli
