#pragma once

#include "qualify/run/progress.hpp"
#include "qualify/run/state.hpp"
#include "tree.hpp"

/// From a verdict down to the nodes: what it was compared from, in which evidence, of which runs,
/// by which jobs. Reads the records; judges nothing again.
namespace qualify::cli {

/// One record with everything; docs/formats/explanation.md.
/// Errors: integrity (a judgement or a manifest that is damaged), not_found, io.
[[nodiscard]] Result<Json> explain(const run::State& state,
                                   const run::QualificationState& qualification);

/// The same for people. Long lists are cut, and say so.
[[nodiscard]] Branch explanation_tree(const Json& explanation);

}  // namespace qualify::cli
