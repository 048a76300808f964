#include <nlohmann/json.hpp>

#include "qualify/spec/bundle_spec.hpp"

namespace qualify::spec {

Json to_json(const Topology& topology) {
  return {{"nodes", topology.nodes},
          {"gpus_per_node", topology.gpus_per_node},
          {"tensor_parallel", topology.tensor_parallel},
          {"pipeline_parallel", topology.pipeline_parallel},
          {"expert_parallel", topology.expert_parallel},
          {"context_parallel", topology.context_parallel},
          {"data_parallel", topology.data_parallel}};
}

Result<Topology> topology_from_json(const Json& json) {
  try {
    const auto field = [&](const char* key) { return json.at(key).get<std::uint32_t>(); };
    return Topology{field("nodes"),           field("gpus_per_node"),
                    field("tensor_parallel"), field("pipeline_parallel"),
                    field("expert_parallel"), field("context_parallel"),
                    field("data_parallel")};
  } catch (const nlohmann::json::exception& error) {
    return fail(Errc::invalid_input, std::string("not a topology: ") + error.what());
  }
}

}  // namespace qualify::spec
