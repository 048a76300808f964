#pragma once

#include "../session.hpp"

namespace CLI {
class App;
}

namespace qualify::cli {

/// Adds `bundle list|diff|export|import|materialize|gc` to the group `bundle`.
void add_bundle_store(CLI::App& group, Session& session);

}  // namespace qualify::cli
