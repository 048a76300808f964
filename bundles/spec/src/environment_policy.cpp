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

std::vector<Error> inherited_faults(const std::map<std::string, std::string>& required,
                                    const std::map<std::string, std::string>& inherited,
                                    const std::string& where) {
  std::vector<Error> faults;
  for (const auto& [name, value] : required) {
    const auto found = inherited.find(name);
    if (found == inherited.end() || found->second == value) continue;
    faults.push_back({Errc::refused,
                      name + " is '" + found->second + "', the bundle requires '" + value + "'",
                      where,
                      "unset " + name + ", or set it to the required value",
                      {}});
  }
  return faults;
}

std::vector<Error> missing_passed(const std::vector<std::string>& passed,
                                  const std::map<std::string, std::string>& inherited,
                                  const std::string& where) {
  std::vector<Error> faults;
  for (const std::string& name : passed) {
    if (inherited.contains(name)) continue;
    faults.push_back({Errc::refused,
                      "the bundle passes " + name + " at launch, but it is not set",
                      where,
                      "export " + name + " and run again",
                      {}});
  }
  return faults;
}

std::vector<std::string> inherited_numeric(const std::map<std::string, std::string>& inherited) {
  std::vector<std::string> names;
  for (const auto& [name, value] : inherited) {
    if (is_numeric_variable(name)) names.push_back(name);
  }
  return names;
}

}  // namespace qualify::spec
