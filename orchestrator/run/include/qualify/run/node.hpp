#pragma once

#include <string>
#include <vector>

#include "qualify/base/clock.hpp"
#include "qualify/base/json.hpp"
#include "qualify/run/job_plan.hpp"

/// What is done on each node of an attempt, on the host itself, before and after the workload.
/// Every node writes files of its own below <attempt>/nodes/:
///   NAME.verify.json    what verify_node found
///   NAME.environment    the environment that the node's first task really got, NUL-separated
///                       (src/task.sh writes it; within the container, if there is one)
///   NAME.collect.json   what collect_node found
/// The batch step joins them to nodes.jsonl, one line a node, which is evidence.
namespace qualify::run {

struct JobContext;

inline constexpr const char* kNodesFolder = "nodes";
inline constexpr const char* kNodesFile = "nodes.jsonl";
inline constexpr const char* kCollectList = "collect-list.json";

/// Before the workload: the bundle re-verified as this node sees it, the node list, reservation and
/// restart count checked against the plan, environment, driver, GPUs and clocks recorded.
/// Returns what forbids a start here, which the record lists too; empty = nothing.
/// Errors: those of writing the record.
[[nodiscard]] Result<std::vector<std::string>> verify_node(const JobPlan& plan,
                                                           const JobContext& context, Clock& clock);

/// After it: hashes this node's share of the files in collect-list.json (every n-th, from the
/// node's own number), checks the environment that the tasks got, and records the GPUs again.
/// A file that this node does not see yet is waited for up to 30 s.
/// Returns as verify_node. Errors: those of reading the list and writing the record.
[[nodiscard]] Result<std::vector<std::string>> collect_node(const JobPlan& plan,
                                                            const JobContext& context,
                                                            Clock& clock);

/// Joins what the nodes wrote. Errors: integrity (a node wrote nothing, or something damaged).
struct NodeRecords {
  std::vector<std::string> names;   ///< sorted
  bool silent = false;              ///< some node left no record of a step that was asked for
  std::vector<std::string> faults;  ///< "node gpu0003: …", of both steps and from comparing them
  std::vector<Json> lines;          ///< for nodes.jsonl, in the order of names
  std::vector<Json> files;          ///< path, size, digest of every collected file
};
/// `collected`: whether collect_node ran too. `expected`: names that must be there; empty = any
/// plan.nodes many.
[[nodiscard]] NodeRecords join_nodes(const JobPlan& plan, const std::vector<std::string>& expected,
                                     bool collected);

}  // namespace qualify::run
