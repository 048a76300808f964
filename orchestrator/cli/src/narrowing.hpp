#pragma once

#include <functional>
#include <string>
#include <vector>

#include "qualify/traces/localize.hpp"
#include "session.hpp"
#include "subject.hpp"

namespace qualify::cli {

/// One level: what two runs with a capture plan showed.
struct Level {
  std::string qualification;  ///< keeps both runs' evidence; empty: the runs that were named
  std::string a;              ///< "QUALIFICATION/RUN"
  std::string b;
  traces::Localization found;
};

/// What parted runs A and B is narrowed down: both arms run again with the capture plan that
/// follows from what was found, in the grant of A's gate, until the interval is one event, nothing
/// finer can be recorded, or what parted them does not come back. Each level is a qualification of
/// its own (of gate "GATE.capture"), with its evidence; one that was interrupted is gone on with.
/// `each` sees every level as it comes, the first as it was found in A and B themselves. Errors:
/// refused (runs of two bundles, or without traces), those of run::qualify_gate and of localising.
[[nodiscard]] Result<std::vector<Level>> narrow(Session& session, run::State& state,
                                                const NamedRun& a, const NamedRun& b,
                                                const traces::LocalizeOptions& options,
                                                const std::function<void(const Level&)>& each);

}  // namespace qualify::cli
