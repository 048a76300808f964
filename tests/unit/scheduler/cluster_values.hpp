#pragma once

#include "qualify/scheduler/grant.hpp"

/// A granted four-node reservation of an hour, in which nothing is wrong.
namespace qualify::scheduler::values {

inline const Time kStart{std::chrono::seconds(1767225600)};

inline Reservation reservation() {
  Reservation value;
  value.name = "sat-night";
  value.start = kStart;
  value.end = kStart + std::chrono::hours(1);
  value.flags = {"SPEC_NODES"};
  value.nodes = {"gpu0001", "gpu0002", "gpu0003", "gpu0004"};
  value.node_count = 4;
  value.core_count = 256;
  value.partition = "batch";
  value.users = {"operator"};
  value.accounts = {"training"};
  value.groups = {"staff"};
  value.licenses = "matlab:1";
  value.features = "h200";
  value.tres = "cpu=256";
  return value;
}

inline Node node(const std::string& name) {
  Node value;
  value.name = name;
  value.usable = true;
  value.state = "IDLE";
  value.cpus = 64;
  value.gpus = 8;
  return value;
}

inline std::vector<Node> nodes() {
  std::vector<Node> values;
  for (const std::string& name : reservation().nodes) values.push_back(node(name));
  return values;
}

}  // namespace qualify::scheduler::values
