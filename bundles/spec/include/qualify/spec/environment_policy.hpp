#pragma once

#include <map>
#include <string>
#include <vector>

#include "qualify/base/error.hpp"

/// The environment that a workload really gets: an inherited variable can override a recipe.
namespace qualify::spec {

/// Variables that change what training computes, or in which order. Always recorded with a run, as
/// its whole effective environment is.
/// Sorted. Source: Megatron-LM's --deterministic-mode checks, and the libraries under it (NCCL,
/// cuBLAS, cuDNN, Transformer Engine, Triton, Mamba, PyTorch).
[[nodiscard]] const std::vector<std::string>& numeric_variables();
[[nodiscard]] bool is_numeric_variable(const std::string& name);

/// Where an inherited environment disagrees with the values that a bundle requires: one fault a
/// variable, in order of names; empty = good. What is not set outside is no fault: the bundle sets
/// it. `where` goes into each error's context ("node n12", "this shell").
[[nodiscard]] std::vector<Error> inherited_faults(
    const std::map<std::string, std::string>& required,
    const std::map<std::string, std::string>& inherited, const std::string& where);

/// What a bundle passes at launch and is not set: one fault a variable, in the bundle's order;
/// empty = good.
[[nodiscard]] std::vector<Error> missing_passed(const std::vector<std::string>& passed,
                                                const std::map<std::string, std::string>& inherited,
                                                const std::string& where);

/// The inherited variables that change numerics. They reach no workload, whose environment is the
/// bundle's; somebody who set them may think otherwise.
[[nodiscard]] std::vector<std::string> inherited_numeric(
    const std::map<std::string, std::string>& inherited);

}  // namespace qualify::spec
