#pragma once

#include "qualify/store/bundle.hpp"

namespace qualify::store {

/// What holds of every bundle that was sealed from a spec, and so must hold of one whose config
/// came from elsewhere before anything is done with it: its names become paths, its arguments are
/// run. Errors: integrity, naming `context` and the first member that is not so.
[[nodiscard]] Result<void> check_rules(const Bundle& bundle, const std::string& context);

}  // namespace qualify::store
