#include "qualify/spec/environment_policy.hpp"

#include <algorithm>

namespace qualify::spec {

const std::vector<std::string>& numeric_variables() {
  static const std::vector<std::string> names{
      "CAUSAL_CONV1D_DETERMINISTIC",
      "CUBLASLT_WORKSPACE_SIZE",
      "CUBLAS_WORKSPACE_CONFIG",
      "CUDA_DEVICE_MAX_CONNECTIONS",
      "CUDA_LAUNCH_BLOCKING",
      "CUDNN_DETERMINISTIC",
      "MAMBA_DETERMINISTIC",
      "NCCL_ALGO",
      "NCCL_BUFFSIZE",
      "NCCL_COLLNET_ENABLE",
      "NCCL_MAX_NCHANNELS",
      "NCCL_MIN_NCHANNELS",
      "NCCL_NTHREADS",
      "NCCL_NVLS_ENABLE",
      "NCCL_P2P_NET_CHUNKSIZE",
      "NCCL_PROTO",
      "NCCL_TUNER_PLUGIN",
      "NVIDIA_TF32_OVERRIDE",
      "NVTE_ALLOW_NONDETERMINISTIC_ALGO",
      "NVTE_FLASH_ATTN",
      "NVTE_FUSED_ATTN",
      "NVTE_UNFUSED_ATTN",
      "OMP_NUM_THREADS",
      "PYTHONHASHSEED",
      "TORCHINDUCTOR_CACHE_DIR",
      "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
      "TRITON_CACHE_AUTOTUNING",
      "TRITON_CACHE_DIR",
  };
  return names;
}

bool is_numeric_variable(const std::string& name) {
  return std::binary_search(numeric_variables().begin(), numeric_variables().end(), name);
}

std::map<std::string, std::optional<std::string>> numeric_environment(
    const std::map<std::string, std::string>& effective) {
  std::map<std::string, std::optional<std::string>> numeric;
  for (const std::string& name : numeric_variables()) {
    const auto found = effective.find(name);
    numeric[name] = found == effective.end() ? std::nullopt : std::optional(found->second);
  }
  return numeric;
}

std::vector<Error> environment_faults(const std::map<std::string, std::string>& required,
                                      const std::map<std::string, std::string>& declared,
                                      const std::map<std::string, std::string>& effective,
                                      const std::string& where) {
  std::vector<Error> faults;
  for (const auto& [name, value] : required) {
    const auto found = effective.find(name);
    if (found != effective.end() && found->second == value) continue;
    faults.push_back({Errc::refused,
                      name + " is " +
                          (found == effective.end() ? "not set" : "'" + found->second + "'") +
                          ", the bundle requires '" + value + "'",
                      where,
                      "set it in the bundle's or the arm's 'environment'",
                      {}});
  }
  for (const auto& [name, value] : effective) {
    if (!is_numeric_variable(name) || required.contains(name)) continue;
    const auto said = declared.find(name);
    if (said != declared.end() && said->second == value) continue;
    faults.push_back(
        {Errc::refused,
         name + "='" + value + "' changes numerics, and the bundle " +
             (said == declared.end() ? "does not declare it" : "says '" + said->second + "'"),
         where,
         "unset " + name + ", or declare it in 'environment'",
         {}});
  }
  return faults;
}

}  // namespace qualify::spec
