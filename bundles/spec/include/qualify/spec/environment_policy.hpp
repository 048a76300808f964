#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "qualify/base/error.hpp"

/// The environment that a workload really gets: an inherited variable can override a recipe.
namespace qualify::spec {

/// Variables that change what training computes, or in which order: always recorded with a run.
/// Sorted. Source: Megatron-LM's --deterministic-mode checks, and the libraries under it (NCCL,
/// cuBLAS, cuDNN, Transformer Engine, Triton, Mamba, PyTorch).
[[nodiscard]] const std::vector<std::string>& numeric_variables();
[[nodiscard]] bool is_numeric_variable(const std::string& name);

/// Of `effective` what changes numerics; a variable of the list that is not set is there with
/// nothing, as "not set" is a setting too.
[[nodiscard]] std::map<std::string, std::optional<std::string>> numeric_environment(
    const std::map<std::string, std::string>& effective);

/// What is wrong with an effective environment, all of it:
/// - a required variable that is missing or has another value;
/// - a variable that changes numerics, has a value, and is neither declared by the bundle or arm
///   (`declared`, with the same value) nor required: it came from outside.
/// Empty = good. `where` goes into each error's context ("node n12", "this shell").
[[nodiscard]] std::vector<Error> environment_faults(
    const std::map<std::string, std::string>& required,
    const std::map<std::string, std::string>& declared,
    const std::map<std::string, std::string>& effective, const std::string& where);

}  // namespace qualify::spec
